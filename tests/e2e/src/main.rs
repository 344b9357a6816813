//! `e2e`: the demo and the end-to-end suite.

use clap::{Parser, Subcommand};
use e2e::cluster::Cluster;
use e2e::error::{Result, chain};
use std::path::PathBuf;
use std::process::ExitCode;

/// The demo and the end-to-end suite, on the lab or on the cluster that KUBECONFIG names.
#[derive(Parser)]
struct Arguments {
    /// The project's root
    #[arg(long, default_value = ".")]
    root: PathBuf,
    /// Use this cluster instead of the lab
    #[arg(long)]
    kubeconfig: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// A whole migration under load, shown as it happens
    Demo,
    /// Takes the demo away
    DemoClean,
    /// The scenarios whose name contains the filter; all without one
    Test {
        /// Part of a name
        #[arg(default_value = "")]
        filter: String,
    },
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match prepared(&arguments).and_then(|(kubeconfig, kubectl)| run(arguments, kubeconfig, kubectl)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("e2e: {}", chain(&error));
            ExitCode::FAILURE
        }
    }
}

/// Enters the lab's network while this is the only thread.
fn prepared(arguments: &Arguments) -> Result<(PathBuf, PathBuf)> {
    if let Some(kubeconfig) = &arguments.kubeconfig {
        return Ok((kubeconfig.clone(), PathBuf::from("kubectl")));
    }
    lab::enter_network()?;
    Ok((lab::kubeconfig_path(), lab::bin("kubectl")?))
}

fn run(arguments: Arguments, kubeconfig: PathBuf, kubectl: PathBuf) -> Result<()> {
    if rustls::crypto::aws_lc_rs::default_provider().install_default().is_err() {
        eprintln!("e2e: a TLS provider was installed already");
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|source| e2e::error::Error::File { path: "runtime".to_owned(), source })?;
    runtime.block_on(async {
        let cluster = Cluster::connect(kubeconfig, kubectl).await?;
        let root = arguments.root;
        match arguments.command {
            Command::Demo => e2e::demo::run(&cluster, &root).await,
            Command::DemoClean => e2e::demo::clean(&cluster).await,
            Command::Test { filter } => e2e::suite::run(&cluster, &root, &filter).await,
        }
    })
}

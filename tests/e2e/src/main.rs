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
    /// The failure that this exists for: ephemeral clusters are rolled
    DemoWhy,
    /// Takes the demo away
    DemoClean,
    /// Migrations to and fro between two standing clusters
    BenchSwitch {
        /// How many
        #[arg(default_value_t = 10)]
        runs: usize,
    },
    /// The end-to-end scenarios, or some of them
    Test(e2e::suite::Choice),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match prepared(&arguments).and_then(|place| run(arguments, place)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("e2e: {}", chain(&error));
            ExitCode::FAILURE
        }
    }
}

/// Where the cluster is, and what it is reached and disturbed with.
struct Place {
    kubeconfig: PathBuf,
    kubectl: PathBuf,
    lab: Option<PathBuf>,
}

/// Enters the lab's network while this is the only thread.
fn prepared(arguments: &Arguments) -> Result<Place> {
    if let Some(kubeconfig) = &arguments.kubeconfig {
        return Ok(Place { kubeconfig: kubeconfig.clone(), kubectl: PathBuf::from("kubectl"), lab: None });
    }
    lab::enter_network()?;
    let ourselves = std::env::current_exe()
        .map_err(|source| e2e::error::Error::File { path: "our own program".to_owned(), source })?;
    let lab = Some(ourselves.with_file_name("lab"));
    Ok(Place { kubeconfig: lab::kubeconfig_path(), kubectl: lab::bin("kubectl")?, lab })
}

fn run(arguments: Arguments, place: Place) -> Result<()> {
    if rustls::crypto::aws_lc_rs::default_provider().install_default().is_err() {
        eprintln!("e2e: a TLS provider was installed already");
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|source| e2e::error::Error::File { path: "runtime".to_owned(), source })?;
    runtime.block_on(async {
        let cluster = Cluster::connect(place.kubeconfig, place.kubectl, place.lab).await?;
        let root = arguments.root;
        match arguments.command {
            Command::Demo => e2e::demo::run(&cluster, &root).await,
            Command::DemoWhy => e2e::why::run(&cluster, &root).await,
            Command::BenchSwitch { runs } => e2e::bench::run(&cluster, &root, runs).await,
            Command::DemoClean => e2e::demo::clean(&cluster).await,
            Command::Test(choice) => e2e::suite::run(&cluster, &root, &choice).await,
        }
    })
}

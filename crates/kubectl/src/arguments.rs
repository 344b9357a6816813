//! The command line.

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Shows and steers RabbitMQ migrations.
#[derive(Debug, Parser)]
#[command(
    name = "kubectl-rabbitmq_migration",
    bin_name = "kubectl rabbitmq-migration",
    version,
    disable_help_subcommand = true
)]
pub struct Arguments {
    /// Where the cluster is.
    #[command(flatten)]
    pub target: Target,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Which cluster and namespace, as kubectl takes them.
#[derive(Args, Clone, Debug, Default)]
pub struct Target {
    /// The namespace of the migration [default: that of the context]
    #[arg(short, long, global = true)]
    pub namespace: Option<String>,
    /// The context of the kubeconfig file [default: its current one]
    #[arg(long, global = true)]
    pub context: Option<String>,
    /// The kubeconfig file [default: $KUBECONFIG, else ~/.kube/config]
    #[arg(long, global = true, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show where a migration stands, what it waits for and what can be done
    Status {
        /// The migration
        name: String,
        /// Show it again at each change, until it is deleted
        #[arg(short, long)]
        watch: bool,
        /// Print the status as it is stored instead
        #[arg(short, long, value_name = "FORMAT")]
        output: Option<Format>,
    },
    /// Approve the plan that status shows now
    Approve {
        /// The migration
        name: String,
        /// Approve only if the plan has this digest
        #[arg(long, value_name = "DIGEST")]
        plan: Option<String>,
    },
    /// Abort: undo what was made, or take traffic back to blue
    Abort {
        /// The migration
        name: String,
        /// Why; kept in the annotation
        #[arg(long, default_value = "asked for with kubectl")]
        reason: String,
    },
    /// Start again after RolledBack or Failed
    Retry {
        /// The migration
        name: String,
    },
    /// Take traffic back to blue (sets spec.desiredOutcome: RolledBack)
    Rollback {
        /// The migration
        name: String,
    },
    /// Go on measuring and change nothing
    Pause {
        /// The migration
        name: String,
    },
    /// Go on after a pause
    Resume {
        /// The migration
        name: String,
    },
    /// Print the version of the plugin and of the API that it knows
    Version,
}

/// How status is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// JSON.
    Json,
    /// YAML.
    Yaml,
}

//! What is set once, from the command line or the environment.

use clap::{Args, ValueEnum};
use std::net::SocketAddr;
use std::time::Duration;

/// The operator's settings. Read once in `main`; nothing else reads the environment.
#[derive(Args, Clone, Debug)]
pub struct Settings {
    /// Namespaces whose migrations are handled, separated by commas; all unless given
    #[arg(long = "namespace", env = "WATCH_NAMESPACES", value_delimiter = ',')]
    pub namespaces: Vec<String>,

    /// The namespace that the operator runs in; its Lease lives there
    #[arg(long, env = "POD_NAMESPACE", default_value = "rabbitmq-migration")]
    pub operator_namespace: String,

    /// The operator's own pod, as the Lease names its holder
    #[arg(long, env = "POD_NAME", default_value = "rabbitmq-migration-operator")]
    pub pod_name: String,

    /// Where metrics and health are served
    #[arg(long, env = "METRICS_ADDRESS", default_value = "0.0.0.0:8080")]
    pub metrics_address: SocketAddr,

    /// How many migrations may probe at the same time; a probe takes about a tenth of a core
    #[arg(long, env = "MAX_PROBES", default_value_t = 4)]
    pub max_probes: usize,

    /// How log lines are written
    #[arg(long, env = "LOG_FORMAT", value_enum, default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,
}

/// How log lines are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people
    Text,
    /// For machines: one JSON object per line
    Json,
}

impl Settings {
    /// The namespaces that are watched; an empty list means all. Blank words count for nothing, so that an
    /// empty environment variable means all.
    pub fn watched(&self) -> Vec<&str> {
        self.namespaces.iter().map(|name| name.trim()).filter(|name| !name.is_empty()).collect()
    }
}

/// How long the operator waits. Not for users to choose: the parts depend on each other. Tests take shorter ones.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// How long others must see no renewal of the Lease before they take over.
    pub lease: Duration,
    /// How long after the last renewal was *sent* we still act. Less than `lease`, whatever the clocks say:
    /// others begin to count when they see the renewal, which is later.
    pub deadline: Duration,
    /// How often we renew: two renewals may fail before the deadline.
    pub renew: Duration,
    /// How long between two looks at a Lease that another holds, or after a failure.
    pub retry: Duration,
    /// Between two wakes of one migration by what changes in Kubernetes.
    pub gap: Duration,
    /// How long between two questions whether something may be watched.
    pub review: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            // client-go's default.
            lease: Duration::from_secs(15),
            deadline: Duration::from_secs(10),
            renew: Duration::from_secs(5),
            retry: Duration::from_secs(2),
            // What flaps may cost: a pass a second is what waiting costs anyway.
            gap: Duration::from_secs(1),
            review: Duration::from_mins(3),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        settings: Settings,
    }

    fn parse(words: &[&str]) -> Settings {
        Line::parse_from(words).settings
    }

    #[test]
    fn nothing_given_watches_all_namespaces() {
        assert!(parse(&["operator"]).watched().is_empty());
        assert!(parse(&["operator", "--namespace", ""]).watched().is_empty());
    }

    #[test]
    fn namespaces_are_separated_by_commas() {
        assert_eq!(parse(&["operator", "--namespace", "a, b"]).watched(), ["a", "b"]);
    }
}

//! Runs scenarios one after another and says how each ended and how long it took.

use crate::cluster::Cluster;
use crate::error::{Error, Result, chain};
use crate::scenarios::{self, Scenario};
use std::path::Path;
use std::time::Instant;

/// Which scenarios to run.
#[derive(Debug, Default, clap::Args)]
pub struct Choice {
    /// Parts of names; all scenarios without one
    only: Vec<String>,
    /// Names to leave out
    #[arg(long)]
    skip: Vec<String>,
}

impl Choice {
    fn has(&self, name: &str) -> bool {
        let wanted = self.only.is_empty() || self.only.iter().any(|part| name.contains(part.as_str()));
        wanted && !self.skip.iter().any(|skipped| skipped == name)
    }

    /// A misspelt name must not make a suite that tests less.
    fn check(&self) -> Result<()> {
        let names = scenarios::ALL.map(|scenario| scenario.name);
        let missing = |part: &&String| !names.iter().any(|name| name.contains(part.as_str()));
        match self.only.iter().chain(&self.skip).find(missing) {
            None => Ok(()),
            Some(part) => {
                Err(Error::Expected(format!("a scenario named \"{part}\"; there are {}", names.join(", "))))
            }
        }
    }
}

/// Runs the chosen scenarios; `Ok` where none failed.
pub async fn run(cluster: &Cluster, root: &Path, choice: &Choice) -> Result<()> {
    choice.check()?;
    let mut failed = Vec::new();
    let mut passed = 0;
    let chosen = |scenario: &&Scenario| choice.has(scenario.name);
    for scenario in scenarios::ALL.iter().filter(chosen) {
        println!("\n== {}: {}", scenario.name, scenario.promise);
        let begun = Instant::now();
        let outcome = (scenario.run)(cluster.clone(), root.to_path_buf()).await;
        let seconds = begun.elapsed().as_secs();
        match outcome {
            Ok(()) => {
                passed += 1;
                println!("== {} passed in {seconds} s", scenario.name);
            }
            Err(error) => {
                println!("== {} FAILED after {seconds} s: {}", scenario.name, chain(&error));
                keep_evidence(cluster, root, scenario.name).await;
                failed.push(scenario.name);
            }
        }
    }
    println!("\n{passed} passed, {} failed", failed.len());
    if failed.is_empty() && passed > 0 {
        return Ok(());
    }
    Err(Error::Expected(format!("every scenario to pass; failed: {}", failed.join(", "))))
}

/// Keeps what a person needs to find out why: the migrations, events, pods and the operator's log.
async fn keep_evidence(cluster: &Cluster, root: &Path, name: &str) {
    let directory = root.join("target/e2e").join(name);
    if std::fs::create_dir_all(&directory).is_err() {
        return;
    }
    let looks: [(&str, &[&str]); 4] = [
        ("migrations.yaml", &["get", "rmqm", "-A", "-o", "yaml"]),
        ("events.txt", &["get", "events", "-A", "--sort-by=.lastTimestamp"]),
        ("pods.txt", &["get", "pods", "-A", "-o", "wide"]),
        (
            "operator.log",
            &[
                "-n",
                "rabbitmq-migration",
                "logs",
                "-l",
                "app.kubernetes.io/name=rabbitmq-migration-operator",
                "--tail=-1",
            ],
        ),
    ];
    for (file, arguments) in looks {
        if let Ok(text) = cluster.kubectl(arguments).await
            && std::fs::write(directory.join(file), text).is_err()
        {
            println!("   {file} could not be kept");
        }
    }
    println!("   evidence: {}", directory.display());
}

#[cfg(test)]
mod tests {
    use super::Choice;

    fn choice(only: &[&str], skip: &[&str]) -> Choice {
        let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        Choice { only: owned(only), skip: owned(skip) }
    }

    #[test]
    fn scenarios_are_chosen_by_parts_and_left_out_by_name() {
        assert!(choice(&[], &[]).has("kills"));
        assert!(choice(&["bad", "why"], &[]).has("bad-input"));
        assert!(!choice(&["bad", "why"], &[]).has("kills"));
        assert!(!choice(&[], &["kills"]).has("kills"));
        assert!(choice(&[], &["kill"]).has("kills"));
    }

    #[test]
    fn a_name_that_nothing_has_is_an_error() {
        assert!(choice(&["bad"], &["why"]).check().is_ok());
        let error = choice(&["bed"], &[]).check().map_err(|error| error.to_string());
        assert!(error.is_err_and(|said| said.contains("bed") && said.contains("bad-input")));
    }
}

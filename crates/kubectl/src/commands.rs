//! The commands: read the migration, then print it or write an order.

use crate::arguments::{Command, Format};
use crate::connect::Migrations;
use crate::error::Error;
use crate::orders::{self, Order};
use crate::render::{Look, render};
use api::RabbitMQMigration;
use futures::{StreamExt, TryStreamExt};
use jiff::Timestamp;
use kube::api::{Patch, PatchParams};
use kube::runtime::{WatchStreamExt, watcher};
use std::io::Write;

/// Who wrote a field, in managedFields.
const MANAGER: &str = "kubectl-rabbitmq_migration";

/// Carries out a command and writes to `out`; `look` says how status is drawn.
pub async fn run(
    command: &Command,
    migrations: &Migrations,
    look: Look,
    out: &mut impl Write,
) -> Result<(), Error> {
    let read = |name| read(migrations, name);
    match command {
        Command::Status { name, watch: false, output } => show(&read(name).await?, *output, look, out),
        Command::Status { name, watch: true, output } => watch(migrations, name, *output, look, out).await,
        Command::Approve { name, plan } => {
            order(migrations, name, orders::approve(&read(name).await?, plan.as_deref())?, out).await
        }
        Command::Abort { name, reason } => {
            let found = read(name).await?;
            order(migrations, name, orders::abort(&found, reason, Timestamp::now())?, out).await
        }
        Command::Retry { name } => {
            order(migrations, name, orders::retry(&read(name).await?, Timestamp::now())?, out).await
        }
        Command::Rollback { name } => {
            order(migrations, name, orders::rollback(&read(name).await?)?, out).await
        }
        Command::Pause { name } => order(migrations, name, orders::pause(&read(name).await?), out).await,
        Command::Resume { name } => order(migrations, name, orders::resume(&read(name).await?)?, out).await,
        Command::Version => print(out, &version()),
    }
}

/// What this program is and knows.
pub fn version() -> String {
    format!(
        "{MANAGER} {}, {}/v1alpha1, status protocol {}\n",
        env!("CARGO_PKG_VERSION"),
        api::GROUP,
        api::status::PROTOCOL
    )
}

async fn read(migrations: &Migrations, name: &str) -> Result<RabbitMQMigration, Error> {
    let (name, namespace) = (name.to_owned(), migrations.namespace.clone());
    match migrations.api.get_opt(&name).await {
        Ok(Some(found)) => Ok(found),
        Ok(None) => Err(Error::Missing { name, namespace }),
        Err(e) => Err(Error::Read { name, namespace, source: Box::new(e) }),
    }
}

/// Writes an order, then says so.
async fn order(migrations: &Migrations, name: &str, order: Order, out: &mut impl Write) -> Result<(), Error> {
    let params = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
    let written = migrations.api.patch(name, &params, &Patch::Merge(&order.patch)).await;
    written.map_err(|e| Error::Write {
        name: name.to_owned(),
        namespace: migrations.namespace.clone(),
        source: Box::new(e),
    })?;
    print(out, &format!("{}\n", order.told))
}

/// Shows the migration at each change until it is deleted.
async fn watch(
    migrations: &Migrations,
    name: &str,
    output: Option<Format>,
    look: Look,
    out: &mut impl Write,
) -> Result<(), Error> {
    // A name that is mistyped is told at once, and not waited for.
    read(migrations, name).await?;
    let changes = watcher::watch_object(migrations.api.clone(), name).default_backoff();
    let (name, namespace) = (name.to_owned(), migrations.namespace.clone());
    let mut changes = changes.boxed();
    loop {
        match changes.try_next().await {
            Ok(Some(Some(found))) => {
                if look.color && output.is_none() {
                    // To the upper left, and the rest of the screen away.
                    print(out, "\x1b[H\x1b[2J")?;
                }
                show(&found, output, look, out)?;
                let parts = if output == Some(Format::Yaml) { "---\n" } else { "" };
                print(out, parts)?;
            }
            Ok(Some(None) | None) => return Err(Error::Deleted { name, namespace }),
            Err(e) if is_passing(&e) => {}
            Err(e) => return Err(Error::Watch { name, namespace, source: Box::new(e) }),
        }
    }
}

/// What the watcher heals by itself; a refusal it would repeat for ever.
fn is_passing(error: &watcher::Error) -> bool {
    let (watcher::Error::InitialListFailed(cause)
    | watcher::Error::WatchStartFailed(cause)
    | watcher::Error::WatchFailed(cause)) = error
    else {
        return true;
    };
    !matches!(cause, kube::Error::Api(status) if status.is_forbidden() || status.code == 401)
}

fn show(
    found: &RabbitMQMigration,
    output: Option<Format>,
    look: Look,
    out: &mut impl Write,
) -> Result<(), Error> {
    let text = match output {
        None => render(found, Timestamp::now(), look),
        Some(Format::Json) => {
            let text = serde_json::to_string_pretty(&found.status);
            text.map_err(|e| Error::Print { source: Box::new(e) })? + "\n"
        }
        Some(Format::Yaml) => {
            serde_saphyr::to_string(&found.status).map_err(|e| Error::Print { source: Box::new(e) })?
        }
    };
    print(out, &text)
}

fn print(out: &mut impl Write, text: &str) -> Result<(), Error> {
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.map_err(|e| Error::Print { source: Box::new(e) })
}

//! Blue's definitions: exported, sealed, rewritten, and compared with green's.

use super::alike::{Key, alike};
use crate::act::import::Prepared;
use crate::body::{Memory, Scene};
use decide::names::{Names, PREFIX};
use decide::rewrites::{
    Change, Classes, Comparison, Context, Decision, Dynamic, LimitOwner, OwnLimit, Rewritten, Section,
    compare, rewrite,
};
use decide::side::Side;
use decide::world::{DefinitionsView, Reading};
use jiff::Timestamp;
use rabbit::management::MAX_CONNECTIONS;
use rabbit::seal::seal;
use serde_json::json;
use sha2::{Digest, Sha256};
use std::sync::Arc;

/// Rewrites whose objects come and go by themselves, or are the operator's own doing: nobody decides on them,
/// so they are counted and do not void an approval.
const PASSING: [&str; 4] =
    ["no-server-named-queues", "no-transient-queues", "bindings-lead-somewhere", "own-limits-undone"];
/// Differences that are told one by one.
const MOST_DIFFERENCES: usize = 200;

/// Exports blue, rewrites what changed since the last time, and compares with green. A green that cannot be
/// read yet is a difference, not a failure: the rewrites are wanted before it is there. Holds no secret.
pub async fn definitions(scene: &Scene<'_>, memory: &mut Memory) -> Reading<DefinitionsView> {
    let begun = Timestamp::now();
    let context = context(scene, memory);
    let export = match memory.link(Side::Blue).ask_long(export).await {
        Ok(export) => export,
        Err(error) => return Reading::Failed(error.report()),
    };
    let prepared = match prepare(memory, export, &context).await {
        Ok(prepared) => prepared,
        Err(why) => return Reading::Failed(why),
    };
    let compared = compare_with_green(memory, &prepared, context).await;
    let mut view = view(&prepared.rewritten, &compared);
    view.compared_at = Some(begun);
    view.import_error = memory.import.error().map(str::to_owned);
    view.imported = memory.import.imported().map(str::to_owned);
    if view.differences.is_empty() {
        memory.import.forget_imported();
    }
    Reading::Seen(view)
}

async fn export(client: rabbit::management::Client) -> rabbit::Result<Vec<u8>> {
    client.export_definitions().await
}

/// Everything beside the definitions that decides about the rewrites.
fn context(scene: &Scene<'_>, memory: &Memory) -> Context {
    let version = |side| {
        let broker = memory.world.brokers.of(side).seen();
        broker.and_then(|broker| broker.version()).unwrap_or_default().to_owned()
    };
    let green = memory.links.of(Side::Green);
    let record = memory.world.record.seen().and_then(Option::as_ref);
    let limits = record.map(|record| record.limits.as_slice()).unwrap_or_default();
    let own_limits = limits.iter().filter(|limit| limit.side == Side::Blue).map(|limit| OwnLimit {
        owner: LimitOwner::User,
        name: limit.user.clone(),
        limit: MAX_CONNECTIONS.to_owned(),
        set: json!(0),
        before: limit.max_connections.map(|limit| json!(limit)),
    });
    let dynamic = scene.plan.topology.dynamic.iter().map(|dynamic| Dynamic {
        section: match dynamic.kind {
            api::spec::DynamicKind::User => Section::Users,
            api::spec::DynamicKind::Queue => Section::Queues,
        },
        pattern: dynamic.pattern.clone(),
    });
    Context {
        blue_version: version(Side::Blue),
        green_version: version(Side::Green),
        green_exchange_types: green.exchange_types.clone(),
        our_prefix: PREFIX.to_owned(),
        exclude_users: green.admin_user().map(str::to_owned).into_iter().collect(),
        choices: Vec::new(),
        own_limits: own_limits.collect(),
        dynamic: dynamic.collect(),
    }
}

/// Seals and rewrites on a blocking thread, once per export and context.
async fn prepare(memory: &mut Memory, export: Vec<u8>, context: &Context) -> Result<Arc<Prepared>, String> {
    let key = memory.import.key().map_err(|error| error.report())?;
    let source = source_digest(&export, context);
    if let Some(prepared) = memory.import.prepared_from(source) {
        return Ok(prepared);
    }
    let context = context.clone();
    let prepared = blocking(move || {
        let sealed = seal(&export).map_err(|error| error.report())?;
        let rewritten = rewrite(&sealed.bytes, &context).map_err(|malformed| malformed.to_string())?;
        let wanted = alike(&rewritten.document, &sealed.seals, &key).map_err(|error| error.report())?;
        Ok(Prepared { source, seals: sealed.seals, rewritten, wanted })
    });
    Ok(memory.import.keep(prepared.await?))
}

/// Which export, and which rewrites.
fn source_digest(export: &[u8], context: &Context) -> [u8; 32] {
    let context = serde_json::to_vec(context).unwrap_or_default();
    Sha256::new().chain_update(export).chain_update(context).finalize().into()
}

/// Exports green and compares; `Err` says why green could not be read.
async fn compare_with_green(
    memory: &mut Memory,
    prepared: &Arc<Prepared>,
    context: Context,
) -> Result<Comparison, String> {
    let key: Key = memory.import.key().map_err(|error| error.report())?;
    let link = memory.link(Side::Green);
    if link.pods().is_empty() || !link.has_admin() {
        return Err("green is not there yet".to_owned());
    }
    let export = link.ask_long(export).await.map_err(|error| error.report())?;
    let prepared = Arc::clone(prepared);
    blocking(move || {
        let sealed = seal(&export).map_err(|error| error.report())?;
        let green = alike(&sealed.bytes, &sealed.seals, &key).map_err(|error| error.report())?;
        compare(&prepared.wanted, &green, &context).map_err(|malformed| malformed.to_string())
    })
    .await
}

/// Runs what takes long away from the tasks that answer probes and renew leases.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    match tokio::task::spawn_blocking(work).await {
        Ok(outcome) => outcome,
        Err(_) => Err("the rewrites of the definitions broke off".to_owned()),
    }
}

fn view(rewritten: &Rewritten, compared: &Result<Comparison, String>) -> DefinitionsView {
    let told = |change: &Change| format!("{}: {}: {}", change.rule, change.object, change.what);
    let that = |decision: Decision| -> Vec<String> {
        rewritten.changes.iter().filter(|change| change.decision == decision).map(told).collect()
    };
    let (differences, extra) = match compared {
        Ok(comparison) => (differences(comparison), comparison.extra.len()),
        Err(why) => (vec![format!("green's definitions cannot be read: {why}")], 0),
    };
    DefinitionsView {
        digest: rewritten.digest.clone(),
        counts: counts(rewritten, extra),
        rewrites: rewritten.changes.iter().filter(|change| !is_passing(change)).map(told).collect(),
        needs_consent: that(Decision::NeedsConsent),
        blocked: that(Decision::Blocks),
        differences,
        compared_at: None,
        import_error: None,
        imported: None,
    }
}

/// Whether a change says nothing that a person would decide on.
fn is_passing(change: &Change) -> bool {
    let ours =
        Names::is_ours(&change.object.name) || change.object.vhost.as_deref().is_some_and(Names::is_ours);
    let weighs = matches!(change.decision, Decision::NeedsConsent | Decision::Blocks);
    ours || (!weighs && PASSING.contains(&change.rule.as_str()))
}

/// `2 vhosts, 4 queues`, with queues that come and go; what only green has is counted here, since no import
/// takes it away.
fn counts(rewritten: &Rewritten, extra: usize) -> String {
    let counts = rewritten.counts.iter().filter(|(_, count)| **count > 0);
    let mut counts: Vec<String> =
        counts.map(|(section, count)| format!("{count} {}", section.key().replace('_', " "))).collect();
    let Classes { exclusive, server_named, auto_delete, expiring, dynamic } = rewritten.classes;
    let passing = [
        (exclusive, "exclusive"),
        (server_named, "server-named"),
        (auto_delete, "auto-delete"),
        (expiring, "expiring"),
        (dynamic, "dynamic"),
    ];
    counts.extend(
        passing.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")),
    );
    if extra > 0 {
        counts.push(format!("{extra} only on green"));
    }
    counts.join(", ")
}

fn differences(comparison: &Comparison) -> Vec<String> {
    let missing = comparison.missing.iter().map(|object| format!("missing: {object}"));
    let different = comparison
        .different
        .iter()
        .map(|difference| format!("different: {} ({})", difference.object, difference.fields.join(", ")));
    let mut lines: Vec<String> = missing.chain(different).collect();
    let all = lines.len();
    if all > MOST_DIFFERENCES {
        lines.truncate(MOST_DIFFERENCES);
        lines.push(format!("and {} more", all - MOST_DIFFERENCES));
    }
    lines
}

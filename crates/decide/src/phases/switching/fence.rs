//! Fencing the old side: from now on whoever loses his connection there comes to the new side.

use crate::context::{Context, cannot_see};
use crate::effect::Effect;
use crate::phases::switching::{note_stage, stage};
use crate::record::{OriginalLimit, SwitchRecord};
use crate::side::{Heading, Side};
use crate::step::Step;
use crate::world::{Reading, UserView};
use api::RabbitMQMigrationStatus;
use jiff::Timestamp;

/// Since when every user of a side is seen to be fenced: whatever was seen of it before may have changed.
pub fn closed_since(context: &Context<'_>, side: Side) -> Option<Timestamp> {
    let closed = |users: &[UserView]| users.iter().all(|user| user.max_connections == Some(0));
    let listings = context.world.history.users.of(side).newest_first();
    listings.take_while(|(_, users)| closed(users)).last().map(|(at, _)| *at)
}

/// Fences every user who is not fenced yet; one who is new is put on record first.
pub fn decide(
    context: &Context<'_>,
    draft: &mut RabbitMQMigrationStatus,
    heading: Heading,
    record: &SwitchRecord,
) -> Option<Step> {
    let users = match context.world.users.of(heading.from) {
        Reading::Seen(users) => users,
        unknown => return Some(cannot_see(format!("users of {}: {}", heading.from, unknown.why_not()))),
    };
    let open: Vec<_> = users.iter().filter(|user| user.max_connections != Some(0)).collect();
    if open.is_empty() {
        return None;
    }
    note_stage(draft, stage::FENCE);
    let unrecorded: Vec<OriginalLimit> = open
        .iter()
        .filter(|user| record.limit(heading.from, &user.name).is_none())
        .map(|user| OriginalLimit {
            side: heading.from,
            user: user.name.clone(),
            max_connections: user.max_connections,
        })
        .collect();
    if !unrecorded.is_empty() {
        let mut record = record.clone();
        record.limits.extend(unrecorded);
        return Some(Step::act(Effect::StoreRecord(Box::new(record))));
    }
    let users = open.into_iter().map(|user| user.name.clone()).collect();
    Some(Step::act(Effect::Fence { side: heading.from, users }))
}

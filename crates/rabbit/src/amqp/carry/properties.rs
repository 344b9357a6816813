//! What has to change in a message's properties before it can be published elsewhere.

use lapin::BasicProperties;
use lapin::types::{AMQPValue, FieldTable, ShortString};

/// Headers with `CC` renamed, or `None` if there is none.
pub(super) fn rename_cc(headers: &FieldTable) -> Option<FieldTable> {
    headers.contains_key("CC").then(|| {
        let mut renamed = FieldTable::default();
        for (key, value) in headers.inner() {
            let key = if key.as_str() == "CC" { ShortString::from("x-original-cc") } else { key.clone() };
            renamed.insert(key, AMQPValue::clone(value));
        }
        renamed
    })
}

/// lapin's properties have no way to take one off: they are put together again.
pub(super) fn without_user_id(old: &BasicProperties) -> BasicProperties {
    let mut new = BasicProperties::default();
    if let Some(v) = old.content_type().clone() {
        new = new.with_content_type(v);
    }
    if let Some(v) = old.content_encoding().clone() {
        new = new.with_content_encoding(v);
    }
    if let Some(v) = old.headers().clone() {
        new = new.with_headers(v);
    }
    if let Some(v) = *old.delivery_mode() {
        new = new.with_delivery_mode(v);
    }
    if let Some(v) = *old.priority() {
        new = new.with_priority(v);
    }
    if let Some(v) = old.correlation_id().clone() {
        new = new.with_correlation_id(v);
    }
    if let Some(v) = old.reply_to().clone() {
        new = new.with_reply_to(v);
    }
    if let Some(v) = old.expiration().clone() {
        new = new.with_expiration(v);
    }
    if let Some(v) = old.message_id().clone() {
        new = new.with_message_id(v);
    }
    if let Some(v) = *old.timestamp() {
        new = new.with_timestamp(v);
    }
    if let Some(v) = old.kind().clone() {
        new = new.with_type(v);
    }
    if let Some(v) = old.app_id().clone() {
        new = new.with_app_id(v);
    }
    if let Some(v) = old.cluster_id().clone() {
        new = new.with_cluster_id(v);
    }
    new
}

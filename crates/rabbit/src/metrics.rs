//! The Prometheus endpoint of one node: live counters per node and protocol, our own traffic included.

use std::fmt;

use crate::error::{Cause, Error, Result};
use crate::management::reason::{mask, reason};
use crate::timeouts::Timeouts;

const RECEIVED: &str = "rabbitmq_global_messages_received_total";
const UNROUTABLE: &str = "rabbitmq_global_messages_unroutable_dropped_total";

/// Scrapes one node's `/metrics`. Cloning is cheap.
#[derive(Clone)]
pub struct Client {
    http: reqwest::Client,
    url: String,
    timeouts: Timeouts,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("url", &self.url).finish_non_exhaustive()
    }
}

/// Counters of one node since it started, summed over protocols. `None`: the node does not export it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GlobalCounters {
    /// Messages received from publishers.
    pub received: Option<u64>,
    /// Messages confirmed and dropped because nothing was bound.
    pub unroutable_dropped: Option<u64>,
}

impl Client {
    /// Builds a client for `http://host:15692` of **one node**: through a Service each scrape meets another.
    pub fn new(base_url: &str, timeouts: Timeouts) -> Result<Self> {
        let url = format!("{}/metrics", base_url.trim_end_matches('/'));
        let failed = |cause| Error::BuildClient { url: mask(base_url, &[]), cause };
        let http = crate::management::plain_http(timeouts).map_err(failed)?;
        Ok(Self { http, url, timeouts })
    }

    /// Reads the global counters: exact within 13 ms, but one number per node and protocol. Needs no user,
    /// the prometheus plugin; changes nothing.
    pub async fn global_counters(&self) -> Result<GlobalCounters> {
        let scrape = async {
            let timeout = self.timeouts.request;
            let lost = |e| crate::management::unreachable(e, timeout);
            let answer = self.http.get(&self.url).timeout(timeout).send().await.map_err(lost)?;
            let status = answer.status();
            let body = answer.bytes().await.map_err(lost)?;
            if !status.is_success() {
                return Err(Cause::Status { status: status.as_u16(), reason: reason(&body, &[]) });
            }
            parse(&String::from_utf8_lossy(&body))
        };
        scrape.await.map_err(|cause| Error::Scrape { url: self.url.clone(), cause })
    }
}

/// Sums the two counters over their labels.
fn parse(text: &str) -> Result<GlobalCounters, Cause> {
    let mut counters = GlobalCounters::default();
    for line in text.lines() {
        if let Some(value) = sample(line, RECEIVED) {
            add(&mut counters.received, value?);
        } else if let Some(value) = sample(line, UNROUTABLE) {
            add(&mut counters.unroutable_dropped, value?);
        }
    }
    Ok(counters)
}

fn add(sum: &mut Option<u64>, value: u64) {
    *sum = Some(sum.unwrap_or(0).saturating_add(value));
}

/// The value of `name{labels} value [timestamp]`, if the line is that series.
fn sample(line: &str, name: &str) -> Option<Result<u64, Cause>> {
    let rest = line.strip_prefix(name)?;
    let value = match rest.strip_prefix('{') {
        Some(labels) => labels.rsplit_once('}')?.1,
        None => rest.strip_prefix(' ')?,
    };
    let word = value.split_whitespace().next()?;
    // Some exporters write counters as floats.
    let whole = word.strip_suffix(".0").unwrap_or(word);
    Some(whole.parse().map_err(|_| Cause::Malformed(format!("{name} is {word}"))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_metrics_are_summed_over_protocols() {
        let text = "# TYPE rabbitmq_global_messages_received_total counter\n\
            rabbitmq_global_messages_received_confirm_total{protocol=\"amqp091\"} 99\n\
            rabbitmq_global_messages_received_total{protocol=\"amqp091\"} 12\n\
            rabbitmq_global_messages_received_total{protocol=\"amqp10\"} 3.0\n\
            rabbitmq_global_messages_unroutable_dropped_total{protocol=\"amqp091\"} 0\n\
            rabbitmq_global_messages_unroutable_returned_total{protocol=\"amqp091\"} 5\n";
        let expected = GlobalCounters { received: Some(15), unroutable_dropped: Some(0) };
        assert_eq!(parse(text).unwrap(), expected);
    }

    #[test]
    fn absent_is_unknown_and_odd_is_an_error() {
        assert_eq!(parse("other 1\n").unwrap(), GlobalCounters::default());
        assert!(parse("rabbitmq_global_messages_received_total NaN").is_err());
    }
}

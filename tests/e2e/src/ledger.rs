//! The checker of the suite: from the ledgers of all clients, what was lost, repeated or reordered. Pure.
//!
//! It counts as Jepsen's `total-queue` does: attempted, confirmed and delivered messages are multisets. A
//! message that was confirmed and never came is *lost*; one that nobody sent is *unexpected*; one that was not
//! confirmed and came all the same is *recovered*. A second delivery is *explained* when its publisher sent it
//! twice (unconfirmed at a close, or refused), or when the broker could not know of the first one's ack; each
//! resend and each such ack explains one delivery and no more.

use std::collections::{BTreeMap, BTreeSet};

use client::document::{Consumed, Document, Published, QueueId};
use client::ranges::{Layers, Ranges};
use serde::{Deserialize, Serialize};

/// As many examples of each fault as a person reads.
const EXAMPLES: usize = 5;

/// A fault that a message can suffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Fault {
    /// Confirmed, never delivered.
    Lost,
    /// Delivered, never sent; or delivered where it does not belong.
    Unexpected,
    /// Delivered once more than anything explains.
    Duplicated,
    /// Came for the first time after a later message of its publisher.
    Reordered,
    /// Confirmed and returned: no queue would have it.
    Unroutable,
}

/// One message that a fault befell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Example {
    /// What happened to it.
    pub fault: Fault,
    /// Vhost and queue.
    pub queue: String,
    /// Its publisher.
    pub publisher: String,
    /// Its number.
    pub seq: u64,
}

/// What all ledgers together say.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// Messages confirmed.
    pub published: u64,
    /// Messages sent at least once.
    pub attempted: u64,
    /// Deliveries.
    pub delivered: u64,
    /// Confirmed and never delivered, per queue that they had to reach.
    pub lost: u64,
    /// Delivered and never sent, or to the wrong queue.
    pub unexpected: u64,
    /// Repeated deliveries that a resend or an unsettled delivery explains.
    pub duplicated_explained: u64,
    /// Repeated deliveries that nothing explains.
    pub duplicated_unexplained: u64,
    /// Never confirmed, delivered all the same.
    pub recovered: u64,
    /// First deliveries after a later message of the same publisher, in queues with one consumer.
    pub reordered: u64,
    /// Confirmed and returned as unroutable.
    pub unroutable: u64,
    /// The longest time between two confirms of one publisher.
    pub publish_gap_millis: u64,
    /// The longest time between two deliveries of one queue.
    pub delivery_gap_millis: u64,
    /// Queues whose order means nothing, since several consumers share them.
    pub unordered: BTreeSet<String>,
    /// Why this report proves nothing, if so.
    pub void: BTreeSet<String>,
    /// The first few messages of each fault.
    pub examples: Vec<Example>,
}

impl Report {
    /// Did every message arrive, and each repetition for a reason? Order is judged apart: not all promise it.
    pub fn is_clean(&self) -> bool {
        self.void.is_empty()
            && [self.lost, self.unexpected, self.duplicated_unexplained, self.unroutable] == [0; 4]
    }

    fn example(&mut self, fault: Fault, queue: &QueueId, publisher: &str, seq: u64) {
        if self.examples.iter().filter(|example| example.fault == fault).count() < EXAMPLES {
            let (queue, publisher) = (queue.to_string(), publisher.to_owned());
            self.examples.push(Example { fault, queue, publisher, seq });
        }
    }
}

/// Judges the ledgers. `remaining` is what each queue still holds, on both sides together; a queue that is not
/// in it is unknown, not empty. A dead-letter queue that nobody read is judged by its depth.
pub fn check(documents: &[Document], remaining: &BTreeMap<QueueId, u64>) -> Report {
    let evidence = Evidence::new(documents);
    let mut report = totals(documents);
    report.delivery_gap_millis = evidence.delivery_gap();
    evidence.distrust(remaining, &mut report);
    for queue in evidence.queues() {
        let ledgers = evidence.consumed.get(&queue).map(Vec::as_slice).unwrap_or_default();
        if ledgers.is_empty() {
            evidence.judge_depth(&queue, remaining.get(&queue).copied(), &mut report);
        } else {
            evidence.judge_queue(&queue, ledgers, &mut report);
        }
    }
    report
}

fn totals(documents: &[Document]) -> Report {
    let publishers = || documents.iter().flat_map(|document| &document.publishers);
    let consumers = || documents.iter().flat_map(|document| &document.consumers);
    let arrived = |ledger: &Consumed| ledger.arrivals.values().map(client::runs::Runs::len).sum::<u64>();
    let mut report = Report {
        published: publishers().map(|ledger| ledger.confirmed.len()).sum(),
        attempted: publishers().map(|ledger| ledger.attempted).sum(),
        delivered: consumers().map(arrived).sum(),
        unexpected: consumers().map(|ledger| ledger.malformed).sum(),
        publish_gap_millis: publishers().map(|ledger| ledger.longest_publish_gap_ms).max().unwrap_or(0),
        ..Report::default()
    };
    for ledger in publishers() {
        report.unroutable += ledger.returned.len();
        let queue = QueueId::new(&ledger.vhost, ledger.queues.join(","));
        for seq in ledger.returned.iter().take(EXAMPLES) {
            report.example(Fault::Unroutable, &queue, &ledger.id, seq);
        }
    }
    report
}

/// All ledgers, by publisher and by queue.
struct Evidence<'a> {
    published: BTreeMap<&'a str, &'a Published>,
    consumed: BTreeMap<QueueId, Vec<&'a Consumed>>,
    /// Which queues send their dead letters to a queue.
    sources: BTreeMap<QueueId, BTreeSet<QueueId>>,
    twice: Vec<&'a str>,
}

/// Which of one publisher's messages have to come to a queue, and which may.
struct Duty {
    must: Ranges,
    may: Ranges,
}

impl<'a> Evidence<'a> {
    fn new(documents: &'a [Document]) -> Self {
        let mut this = Self {
            published: BTreeMap::new(),
            consumed: BTreeMap::new(),
            sources: BTreeMap::new(),
            twice: vec![],
        };
        for ledger in documents.iter().flat_map(|document| &document.publishers) {
            if this.published.insert(&ledger.id, ledger).is_some() {
                this.twice.push(&ledger.id);
            }
        }
        for ledger in documents.iter().flat_map(|document| &document.consumers) {
            let queue = QueueId::new(&ledger.vhost, &ledger.queue);
            if let Some(dead) = &ledger.dead_letters {
                let dead = QueueId::new(&ledger.vhost, dead);
                this.sources.entry(dead).or_default().insert(queue.clone());
            }
            this.consumed.entry(queue).or_default().push(ledger);
        }
        this
    }

    /// Every queue that has a ledger or should have one.
    fn queues(&self) -> BTreeSet<QueueId> {
        let expected = self
            .published
            .values()
            .flat_map(|ledger| ledger.queues.iter().map(|queue| QueueId::new(&ledger.vhost, queue)));
        self.consumed.keys().chain(self.sources.keys()).cloned().chain(expected).collect()
    }

    /// The longest time between two deliveries of a queue; dead letters are too rare to tell.
    fn delivery_gap(&self) -> u64 {
        let live = self.consumed.iter().filter(|(queue, _)| !self.sources.contains_key(*queue));
        live.flat_map(|(_, ledgers)| ledgers).map(|ledger| ledger.longest_delivery_gap_ms).max().unwrap_or(0)
    }

    /// Notes why the report may prove nothing.
    fn distrust(&self, remaining: &BTreeMap<QueueId, u64>, report: &mut Report) {
        if report.published == 0 {
            report.void.insert("nothing was confirmed".to_owned());
        }
        for id in &self.twice {
            report.void.insert(format!("two ledgers of publisher {id}"));
        }
        for queue in self.queues() {
            match remaining.get(&queue) {
                None => _ = report.void.insert(format!("the depth of {queue} is unknown")),
                Some(0) => {}
                Some(depth) if self.consumed.contains_key(&queue) => {
                    report.void.insert(format!("{queue} still holds {depth} messages"));
                }
                Some(_) => {}
            }
        }
    }

    /// What a publisher's messages have to do in a queue; in a dead-letter queue those that were refused.
    fn duty(&self, queue: &QueueId, ledger: &Published) -> Duty {
        if ledger.vhost == queue.vhost && ledger.queues.contains(&queue.queue) {
            let must = ledger.confirmed.iter().filter(|seq| !ledger.returned.contains(*seq)).collect();
            let may = Ranges::from(match ledger.attempted {
                0 => vec![],
                attempted => vec![(1, attempted)],
            });
            return Duty { must, may };
        }
        let refused: Ranges = self
            .feeding(queue)
            .filter_map(|source| source.arrivals.get(&ledger.id))
            .flat_map(|runs| runs.iter().filter(|(_, flags)| flags.rejected()).map(|(seq, _)| seq))
            .collect();
        Duty { must: refused.clone(), may: refused }
    }

    /// The ledgers of the queues whose dead letters go to this queue.
    fn feeding(&self, queue: &QueueId) -> impl Iterator<Item = &'a Consumed> {
        let sources = self.sources.get(queue).into_iter().flatten();
        sources.filter_map(|source| self.consumed.get(source)).flatten().copied()
    }

    /// How many repetitions of a message in a queue have a reason.
    fn allowance(&self, queue: &QueueId, ledger: &Published, seq: u64) -> u64 {
        let own = self.consumed.get(queue).into_iter().flatten().copied();
        let unsettled =
            own.chain(self.feeding(queue)).filter_map(|consumed| consumed.unsettled.get(&ledger.id));
        ledger.resent.count(seq) + unsettled.map(|layers| layers.count(seq)).sum::<u64>()
    }

    /// Nobody read this queue: only its depth can be compared with what it has to hold.
    fn judge_depth(&self, queue: &QueueId, depth: Option<u64>, report: &mut Report) {
        let must: u64 = self.published.values().map(|ledger| self.duty(queue, ledger).must.len()).sum();
        let Some(depth) = depth else { return };
        if !self.sources.contains_key(queue) && must > 0 {
            report.void.insert(format!("{queue} was not read"));
        }
        let resent: u64 = self.published.values().map(|ledger| ledger.resent.len()).sum();
        let unsettled = |source: &Consumed| source.unsettled.values().map(Layers::len).sum::<u64>();
        let allowance = resent + self.feeding(queue).map(unsettled).sum::<u64>();
        report.lost += must.saturating_sub(depth);
        report.unexpected += depth.saturating_sub(must.saturating_add(allowance));
    }

    fn judge_queue(&self, queue: &QueueId, ledgers: &[&Consumed], report: &mut Report) {
        let consumers: usize = ledgers.iter().map(|ledger| ledger.consumers).sum();
        if consumers > 1 {
            report.unordered.insert(queue.to_string());
        }
        let strangers = ledgers.iter().flat_map(|ledger| ledger.arrivals.iter());
        for (publisher, runs) in strangers.filter(|(id, _)| !self.published.contains_key(id.as_str())) {
            report.unexpected += runs.len();
            runs.iter().take(EXAMPLES).for_each(|(seq, _)| {
                report.example(Fault::Unexpected, queue, publisher, seq);
            });
        }
        for ledger in self.published.values() {
            let arrivals: Vec<u64> = ledgers
                .iter()
                .filter_map(|consumed| consumed.arrivals.get(&ledger.id))
                .flat_map(|runs| runs.iter().map(|(seq, _)| seq))
                .collect();
            self.judge_messages(queue, ledger, &arrivals, report);
            if self.sources.contains_key(queue) {
                // Dead letters come when a consumer refused them: they say nothing about the order sent, and
                // whether they were confirmed was judged where they were refused.
                continue;
            }
            let unconfirmed = arrivals.iter().filter(|seq| !ledger.confirmed.contains(**seq));
            let unconfirmed: Ranges = unconfirmed.copied().filter(|seq| *seq <= ledger.attempted).collect();
            report.recovered += unconfirmed.len();
            if consumers == 1 {
                judge_order(queue, &ledger.id, &arrivals, report);
            }
        }
    }

    /// One publisher's messages in one queue.
    fn judge_messages(&self, queue: &QueueId, ledger: &Published, arrivals: &[u64], report: &mut Report) {
        let duty = self.duty(queue, ledger);
        let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
        for seq in arrivals {
            *counts.entry(*seq).or_default() += 1;
        }
        for seq in duty.must.iter().filter(|seq| !counts.contains_key(seq)) {
            report.lost += 1;
            report.example(Fault::Lost, queue, &ledger.id, seq);
        }
        for (seq, count) in counts {
            if !duty.may.contains(seq) {
                report.unexpected += count;
                report.example(Fault::Unexpected, queue, &ledger.id, seq);
            } else if count > 1 {
                let explained = (count - 1).min(self.allowance(queue, ledger, seq));
                report.duplicated_explained += explained;
                if explained < count - 1 {
                    report.duplicated_unexplained += count - 1 - explained;
                    report.example(Fault::Duplicated, queue, &ledger.id, seq);
                }
            }
        }
    }
}

/// First arrivals have to ascend.
fn judge_order(queue: &QueueId, publisher: &str, arrivals: &[u64], report: &mut Report) {
    let (mut seen, mut latest) = (Ranges::default(), 0);
    for seq in arrivals.iter().copied().filter(|seq| seen.insert(*seq)) {
        if seq < latest {
            report.reordered += 1;
            report.example(Fault::Reordered, queue, publisher, seq);
        }
        latest = latest.max(seq);
    }
}

#[cfg(test)]
mod tests {
    use client::runs::Flags;

    use super::*;

    /// A publisher that sent 1 to 10 to `q`, all confirmed, and a consumer that got what the test says; every
    /// fifth message is refused and goes to `q.dead`.
    struct Story {
        publisher: Published,
        consumer: Consumed,
        dead: Option<Consumed>,
        remaining: BTreeMap<QueueId, u64>,
    }

    fn consumed(queue: &str, seqs: impl IntoIterator<Item = u64>) -> Consumed {
        let mut ledger = Consumed {
            vhost: "/".to_owned(),
            queue: queue.to_owned(),
            consumers: 1,
            longest_delivery_gap_ms: 7,
            ..Consumed::default()
        };
        for seq in seqs {
            deliver(&mut ledger, "p", seq);
        }
        ledger
    }

    fn deliver(ledger: &mut Consumed, publisher: &str, seq: u64) {
        let flags = Flags::new(0).with_rejected(ledger.queue == "q" && seq.is_multiple_of(5));
        ledger.arrivals.entry(publisher.to_owned()).or_default().push(seq, flags, seq);
    }

    fn story(arrivals: impl IntoIterator<Item = u64>) -> Story {
        let publisher = Published {
            id: "p".to_owned(),
            vhost: "/".to_owned(),
            queues: vec!["q".to_owned()],
            attempted: 10,
            confirmed: (1..=10).collect(),
            longest_publish_gap_ms: 3,
            ..Published::default()
        };
        let mut consumer = consumed("q", arrivals);
        consumer.dead_letters = Some("q.dead".to_owned());
        let remaining = ["q", "q.dead"].map(|queue| (QueueId::new("/", queue), 0)).into();
        let dead = Consumed { longest_delivery_gap_ms: 900, ..consumed("q.dead", [5, 10]) };
        Story { publisher, consumer, dead: Some(dead), remaining }
    }

    fn judge(story: &Story) -> Report {
        let Story { publisher, consumer, dead, remaining } = story;
        let publishing = Document { publishers: vec![publisher.clone()], ..Document::default() };
        let consuming = Document {
            consumers: [Some(consumer.clone()), dead.clone()].into_iter().flatten().collect(),
            ..Document::default()
        };
        check(&[publishing, consuming], remaining)
    }

    fn offenders(report: &Report) -> Vec<(Fault, u64)> {
        report.examples.iter().map(|example| (example.fault, example.seq)).collect()
    }

    #[test]
    fn all_is_well() {
        let report = judge(&story(1..=10));
        assert!(report.is_clean(), "{report:?}");
        let expected = Report {
            published: 10,
            attempted: 10,
            delivered: 12,
            publish_gap_millis: 3,
            delivery_gap_millis: 7,
            ..Report::default()
        };
        assert_eq!(report, expected);
    }

    #[test]
    fn finds_a_lost_message() {
        let report = judge(&story((1..=10).filter(|seq| *seq != 7)));
        assert_eq!((report.lost, report.is_clean()), (1, false));
        assert_eq!(offenders(&report), [(Fault::Lost, 7)]);
    }

    #[test]
    fn finds_a_lost_dead_letter() {
        let mut story = story(1..=10);
        story.dead = Some(consumed("q.dead", [10]));
        assert_eq!(offenders(&judge(&story)), [(Fault::Lost, 5)]);
    }

    #[test]
    fn finds_what_nobody_sent() {
        for (publisher, seq) in [("p", 11), ("p", 0), ("stranger", 1)] {
            let mut story = story(1..=10);
            deliver(&mut story.consumer, publisher, seq);
            let report = judge(&story);
            assert_eq!((report.unexpected, report.is_clean()), (1, false));
            assert_eq!(offenders(&report).first(), Some(&(Fault::Unexpected, seq)));
        }
        let mut story = story(1..=10);
        story.consumer.malformed = 1;
        assert_eq!(judge(&story).unexpected, 1);
    }

    #[test]
    fn finds_what_is_in_the_wrong_queue() {
        let mut story = story(1..=10);
        story.dead = Some(consumed("q.dead", [5, 6, 10]));
        assert_eq!(offenders(&judge(&story)), [(Fault::Unexpected, 6)]);
    }

    #[test]
    fn finds_an_unexplained_duplicate() {
        let report = judge(&story((1..=10).chain([4])));
        assert_eq!((report.duplicated_explained, report.duplicated_unexplained), (0, 1));
        assert_eq!((offenders(&report), report.is_clean()), (vec![(Fault::Duplicated, 4)], false));
    }

    #[test]
    fn a_resend_explains_one_duplicate_and_no_more() {
        let mut story = story((1..=10).chain([4]));
        story.publisher.resent.insert(4);
        let report = judge(&story);
        assert_eq!((report.duplicated_explained, report.is_clean()), (1, true));
        deliver(&mut story.consumer, "p", 4);
        let report = judge(&story);
        assert_eq!((report.duplicated_explained, report.duplicated_unexplained), (1, 1));
    }

    #[test]
    fn an_unsettled_delivery_explains_its_repetition() {
        let mut story = story((1..=10).chain([9, 10]));
        let unsettled = story.consumer.unsettled.entry("p".to_owned()).or_default();
        unsettled.insert(9);
        unsettled.insert(10);
        story.dead = Some(consumed("q.dead", [5, 10, 10]));
        let report = judge(&story);
        assert_eq!((report.duplicated_explained, report.is_clean()), (3, true), "{report:?}");
    }

    #[test]
    fn finds_a_reordering_once_per_message() {
        let report = judge(&story([1, 2, 5, 3, 4, 6, 7, 8, 9, 10]));
        assert_eq!((report.reordered, report.is_clean()), (2, true));
        assert_eq!(offenders(&report), [(Fault::Reordered, 3), (Fault::Reordered, 4)]);
        let mut story = story([1, 2, 3, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
        assert_eq!(judge(&story).reordered, 0, "only first arrivals count");
        story.consumer.consumers = 2;
        assert_eq!(judge(&story).unordered, ["/ q".to_owned()].into());
    }

    #[test]
    fn recovers_what_was_never_confirmed() {
        let mut story = story(1..=10);
        story.publisher.confirmed = (1..=8).collect();
        let report = judge(&story);
        assert_eq!((report.recovered, report.lost, report.is_clean()), (2, 0, true));
        story.consumer = Consumed { dead_letters: Some("q.dead".to_owned()), ..consumed("q", 1..=8) };
        story.dead = Some(consumed("q.dead", [5]));
        assert_eq!((judge(&story).recovered, judge(&story).lost), (0, 0), "nobody promised those");
    }

    #[test]
    fn finds_the_unroutable() {
        let mut story = story((1..=10).filter(|seq| *seq != 7));
        story.publisher.returned = [7].into_iter().collect();
        let report = judge(&story);
        assert_eq!((report.unroutable, report.lost, report.is_clean()), (1, 0, false));
        assert_eq!(offenders(&report), [(Fault::Unroutable, 7)]);
    }

    #[test]
    fn an_unread_dead_letter_queue_is_judged_by_its_depth() {
        for (depth, lost, unexpected) in [(2, 0, 0), (1, 1, 0), (3, 0, 1)] {
            let mut story = story(1..=10);
            story.dead = None;
            story.remaining.insert(QueueId::new("/", "q.dead"), depth);
            let report = judge(&story);
            assert_eq!((report.lost, report.unexpected, report.void.len()), (lost, unexpected, 0));
        }
    }

    #[test]
    fn proves_nothing_without_evidence() {
        let mut nothing = story([]);
        nothing.publisher = Published { attempted: 0, confirmed: Ranges::default(), ..nothing.publisher };
        nothing.dead = None;
        let mut held = story(1..=9);
        held.remaining.insert(QueueId::new("/", "q"), 1);
        let mut unknown = story(1..=10);
        unknown.remaining.clear();
        let mut unread = story(1..=10);
        unread.publisher.queues.push("r".to_owned());
        unread.remaining.insert(QueueId::new("/", "r"), 10);
        for (name, story) in [("nothing", nothing), ("held", held), ("unknown", unknown), ("unread", unread)]
        {
            let report = judge(&story);
            assert!(!report.void.is_empty() && !report.is_clean(), "{name}: {report:?}");
        }
        let again = story(1..=10);
        let document = Document { publishers: vec![again.publisher; 2], ..Document::default() };
        assert!(check(&[document], &again.remaining).void.iter().any(|why| why.contains("two ledgers")));
    }

    /// For a person with files: `LEDGERS=DIR DEPTHS='vhost queue=N,...' cargo test -p e2e -- --ignored files`.
    #[test]
    #[ignore = "reads ledgers that were saved by hand"]
    fn files() {
        let directory = std::env::var("LEDGERS").unwrap();
        let documents: Vec<Document> = std::fs::read_dir(directory)
            .unwrap()
            .map(|entry| serde_json::from_slice(&std::fs::read(entry.unwrap().path()).unwrap()).unwrap())
            .collect();
        let mut remaining = BTreeMap::new();
        for depth in std::env::var("DEPTHS").unwrap().split(',') {
            let (name, depth) = depth.split_once('=').unwrap();
            let (vhost, queue) = name.split_once(' ').unwrap();
            remaining.insert(QueueId::new(vhost, queue), depth.parse().unwrap());
        }
        println!("{}", serde_json::to_string_pretty(&check(&documents, &remaining)).unwrap());
    }
}

//! The books of one side: every message of the plan is accounted for in its window. Pure: time comes in.
//!
//! Memory is bounded whatever the broker does: a window is closed at its loss deadline, or sooner when too
//! many are open (after a long stall of our own); of closed windows a few bit sets stay.

use std::collections::VecDeque;

use rabbit::amqp::transport::Outcome;

use crate::body::Stamp;
use crate::latency::Recorder;
use crate::schedule::Schedule;
use crate::summary::Counters;
use crate::window::{Record, Tombstone, Window};

/// Closed windows whose messages are still told apart as late or twice.
const TOMBSTONES: usize = 32;
/// Open windows beyond those that the loss deadline explains.
const SPARE: u64 = 4;

/// What never changes in a run.
#[derive(Debug, Clone)]
pub(crate) struct Terms {
    pub schedule: Schedule,
    pub run: u64,
    /// Position of the side in the run.
    pub side: u8,
    pub queues: u64,
    /// Nanoseconds after a window's end at which what has not come is lost.
    pub loss_deadline: u64,
}

#[derive(Debug)]
pub(crate) struct Ledger {
    terms: Terms,
    empty: Recorder,
    /// The next message of the plan.
    cursor: u64,
    open: VecDeque<Window>,
    closed: VecDeque<Tombstone>,
    /// One past the highest sequence seen, per queue.
    highest: Vec<u64>,
    /// Counted while no window was open.
    carry: Counters,
}

impl Ledger {
    pub fn new(terms: Terms, empty: Recorder) -> Self {
        let queues = usize::try_from(terms.queues).unwrap_or_default();
        Self {
            terms,
            empty,
            cursor: 0,
            open: VecDeque::new(),
            closed: VecDeque::new(),
            highest: vec![0; queues],
            carry: Counters::default(),
        }
    }

    /// The next message of the plan.
    pub fn cursor(&self) -> u64 {
        self.cursor
    }

    /// Messages sent that may still come.
    pub fn undelivered(&self) -> u64 {
        self.open.iter().map(Window::undelivered).sum()
    }

    /// Takes the next message of the plan as sent now.
    pub fn send(&mut self, now: u64) -> Stamp {
        let sequence = self.cursor;
        let intended = self.terms.schedule.offset(sequence);
        if let Some(window) = self.current() {
            window.send(now.saturating_sub(intended));
        }
        self.cursor += 1;
        Stamp { sequence, intended, sent: now, side: self.terms.side, publisher: 0, run: self.terms.run }
    }

    /// Takes the next message of the plan as one that could not be sent.
    pub fn drop_slot(&mut self) {
        if let Some(window) = self.current() {
            window.not_sent();
        }
        self.cursor += 1;
    }

    /// Marks the present as paused.
    pub fn pause(&mut self) {
        let cursor = self.cursor;
        if let Some(window) = self.open.back_mut().filter(|window| window.holds(cursor)) {
            window.paused = true;
        }
    }

    /// Leaves out the plan up to a message: what a pause covers is not planned. The windows it touches are
    /// marked; those wholly inside never existed.
    pub fn skip_to(&mut self, sequence: u64) {
        if sequence <= self.cursor {
            return;
        }
        self.pause();
        self.cursor = sequence;
        if let Some(window) = self.current() {
            window.paused = true;
        }
    }

    /// The bytes of a message are in the socket.
    pub fn wire(&mut self, sequence: u64, now: u64) {
        let waited = now.saturating_sub(self.terms.schedule.offset(sequence));
        if let Some(window) = self.open.iter_mut().find(|window| window.holds(sequence)) {
            window.wire(sequence, waited);
        }
    }

    /// The broker answered for a message.
    pub fn answer(&mut self, sequence: u64, outcome: Outcome, now: u64) {
        let latency = now.checked_sub(self.terms.schedule.offset(sequence));
        if let Some(window) = self.open.iter_mut().find(|window| window.holds(sequence)) {
            window.answer(sequence, outcome, latency);
        }
    }

    /// A message came.
    pub fn receive(&mut self, queue: usize, body: &[u8], redelivered: bool, now: u64) {
        let Some(stamp) = Stamp::decode(body).filter(|stamp| self.is_ours(stamp)) else {
            self.stray().foreign += 1;
            return;
        };
        let new = self.enter(&stamp, now);
        if !new {
            let stray = self.stray();
            if redelivered {
                stray.redelivered += 1;
            } else {
                stray.duplicate += 1;
            }
            return;
        }
        let Some(highest) = self.highest.get_mut(queue) else { return };
        if stamp.sequence < *highest && !redelivered {
            self.stray().reordered += 1;
        } else {
            *highest = stamp.sequence.max(*highest);
        }
    }

    /// A connection ended.
    pub fn reconnect(&mut self, own: bool) {
        let stray = self.stray();
        stray.reconnects += 1;
        stray.own_reconnects += u64::from(own);
    }

    /// The broker blocked our publisher.
    pub fn block(&mut self) {
        self.stray().blocked += 1;
    }

    /// Closes the next window that is complete or overdue.
    pub fn close_next(&mut self, now: u64) -> Option<Record> {
        let window = self.open.front()?;
        let ends = self.terms.schedule.starts(window.index + 1);
        let planned = self.cursor >= window.end || window.paused;
        let over = planned && now >= ends && window.is_settled();
        let overdue = planned && now >= ends.saturating_add(self.terms.loss_deadline);
        if !over && !overdue && !self.is_crowded() {
            return None;
        }
        let (record, tombstone) = self.open.pop_front()?.close();
        self.closed.push_back(tombstone);
        if self.closed.len() > TOMBSTONES {
            self.closed.pop_front();
        }
        Some(record)
    }

    /// Whether more windows are open than time explains: close before planning more.
    pub fn is_crowded(&self) -> bool {
        let most = self.terms.loss_deadline / self.terms.schedule.window() + SPARE;
        u64::try_from(self.open.len()).is_ok_and(|open| open > most)
    }

    fn is_ours(&self, stamp: &Stamp) -> bool {
        stamp.run == self.terms.run
            && stamp.side == self.terms.side
            && stamp.publisher == 0
            && stamp.sequence < self.cursor
            && stamp.intended == self.terms.schedule.offset(stamp.sequence)
    }

    /// Enters a delivery in its window; whether it is the message's first.
    fn enter(&mut self, stamp: &Stamp, now: u64) -> bool {
        let sequence = stamp.sequence;
        if let Some(window) = self.open.iter_mut().find(|window| window.holds(sequence)) {
            let intended = now.checked_sub(stamp.intended).filter(|_| now >= stamp.sent);
            return window.receive(sequence, intended);
        }
        let tombstone = self.closed.iter_mut().find(|tombstone| tombstone.holds(sequence));
        let new = tombstone.is_none_or(|tombstone| tombstone.receive(sequence));
        if new {
            self.stray().late += 1;
        }
        new
    }

    /// The window of the next message.
    fn current(&mut self) -> Option<&mut Window> {
        let cursor = self.cursor;
        let have = self.open.back().is_some_and(|window| window.holds(cursor));
        if !have {
            let index = self.terms.schedule.window_of(cursor);
            let mut window = Window::new(index, self.terms.schedule.slots(index), &self.empty);
            window.counters = std::mem::take(&mut self.carry);
            self.open.push_back(window);
        }
        self.open.back_mut()
    }

    /// Where to count what belongs to no message of an open window.
    fn stray(&mut self) -> &mut Counters {
        match self.open.back_mut() {
            Some(window) => &mut window.counters,
            None => &mut self.carry,
        }
    }
}

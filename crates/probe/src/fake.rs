//! A broker of a few lines for the engine's tests: delays, stalls, loses, doubles, refuses, hangs up.

use std::collections::VecDeque;
use std::future::pending;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rabbit::Cause;
use rabbit::amqp::transport::{Outcome, SessionEvent};
use tokio::time::{Instant, sleep_until};

use crate::transport::{Link, Transport};

/// What the broker does, by time since it was first connected to.
#[derive(Debug, Clone, Default)]
pub(crate) struct Script {
    /// From being written to being delivered.
    pub delay: Duration,
    /// Between these times nothing is read from the publisher, and so nothing is written.
    pub stall: Option<(Duration, Duration)>,
    /// Messages that are accepted and never come.
    pub lose: Vec<u64>,
    /// Messages that come twice.
    pub double: Vec<u64>,
    /// Messages that are refused.
    pub refuse: Vec<u64>,
    /// When it hangs up, once.
    pub hang_up: Option<Duration>,
    /// For how long after that nobody answers.
    pub away: Duration,
}

#[derive(Debug, Default)]
pub(crate) struct State {
    since: Option<Instant>,
    hung_up: bool,
    pub opened: usize,
    pub removed: usize,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Broker {
    script: Script,
    pub state: Arc<Mutex<State>>,
}

impl Broker {
    pub fn new(script: Script) -> Self {
        Self { script, state: Arc::default() }
    }

    /// Is away from the start.
    pub fn hang_up_now(&self) {
        let mut state = self.state.lock().unwrap();
        state.since = Some(Instant::now());
        state.hung_up = true;
    }
}

pub(crate) struct Wire {
    script: Script,
    state: Arc<Mutex<State>>,
    since: Instant,
    /// When each event happens, in order of time.
    coming: VecDeque<(Instant, SessionEvent)>,
    unconfirmed: usize,
    ends: Option<Instant>,
}

impl Transport for Broker {
    type Link = Wire;

    async fn open(&self, _attempt: usize, _first: bool) -> Result<Wire, rabbit::Error> {
        let mut state = self.state.lock().unwrap();
        let since = *state.since.get_or_insert_with(Instant::now);
        let ends = self.script.hang_up.map(|after| since + after).filter(|_| !state.hung_up);
        let back = self.script.hang_up.map(|after| since + after + self.script.away);
        if state.hung_up && back.is_some_and(|back| Instant::now() < back) {
            let cause = Cause::Unreachable("away".to_owned());
            let (vhost, user) = (String::new(), String::new());
            return Err(rabbit::Error::Connect { address: "fake".to_owned(), vhost, user, cause });
        }
        state.opened += 1;
        let (script, state) = (self.script.clone(), self.state.clone());
        Ok(Wire { script, state, since, coming: VecDeque::new(), unconfirmed: 0, ends })
    }
}

impl Link for Wire {
    fn publish(&mut self, queue: usize, token: u64, body: Vec<u8>) {
        let stall = self.script.stall.map(|(from, to)| (self.since + from, self.since + to));
        let now = Instant::now();
        let written = match stall {
            Some((from, to)) if (from..to).contains(&now) => to,
            _ => now,
        };
        let (refused, lost) = (self.script.refuse.contains(&token), self.script.lose.contains(&token));
        let outcome = if refused { Outcome::Nacked } else { Outcome::Acked };
        self.unconfirmed += 1;
        self.coming.push_back((written, SessionEvent::Sent(token)));
        let at = written + self.script.delay;
        self.coming.push_back((at, SessionEvent::Confirmed(token, outcome)));
        let copies = if refused || lost { 0 } else { 1 + usize::from(self.script.double.contains(&token)) };
        for _ in 0..copies {
            let body = body.clone();
            self.coming.push_back((at, SessionEvent::Delivered { queue, body, redelivered: false }));
        }
    }

    fn unconfirmed(&self) -> usize {
        self.unconfirmed
    }

    async fn next(&mut self, into: &mut Vec<SessionEvent>) {
        let next = self.coming.iter().map(|(at, _)| *at).min();
        match next.into_iter().chain(self.ends).min() {
            Some(at) => sleep_until(at).await,
            None => pending().await,
        }
        let now = Instant::now();
        if self.ends.is_some_and(|ends| ends <= now) {
            self.state.lock().unwrap().hung_up = true;
            let cause = Cause::Unreachable("hung up".to_owned());
            into.push(SessionEvent::Closed { cause, own: false });
            return;
        }
        let (due, later) = std::mem::take(&mut self.coming).into_iter().partition(|(at, _)| *at <= now);
        self.coming = later;
        let due: VecDeque<_> = due;
        into.extend(due.into_iter().map(|(_, event)| event));
        let answered = into.iter().filter(|event| matches!(event, SessionEvent::Confirmed(..))).count();
        self.unconfirmed -= answered;
    }

    async fn remove(self) -> Result<(), rabbit::Error> {
        self.state.lock().unwrap().removed += 1;
        Ok(())
    }
}

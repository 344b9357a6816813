//! A gate before the server: what is held at it has left its sender and has not arrived.

use super::call::Call;
use std::sync::Mutex;
use tokio::sync::watch;

type Rule = Box<dyn Fn(&Call) -> bool + Send>;

/// Holds requests of one client. A client that is frozen is one all of whose requests are held.
pub struct Gate {
    rule: Mutex<Option<Rule>>,
    opened: watch::Sender<u64>,
    held: watch::Sender<Vec<String>>,
}

impl Gate {
    /// An open one.
    pub fn new() -> Self {
        Self { rule: Mutex::new(None), opened: watch::channel(0).0, held: watch::channel(Vec::new()).0 }
    }

    /// From now on holds what `rule` names.
    pub fn hold(&self, rule: impl Fn(&Call) -> bool + Send + 'static) {
        *self.rule.lock().unwrap() = Some(Box::new(rule));
    }

    /// Lets everything through, what is held first.
    pub fn open(&self) {
        *self.rule.lock().unwrap() = None;
        self.opened.send_modify(|times| *times += 1);
    }

    /// Waits until a call like `what` (`patch secrets`) is held.
    pub async fn holds(&self, what: &str) {
        let mut held = self.held.subscribe();
        held.wait_for(|held| held.iter().any(|found| found == what)).await.unwrap();
    }

    /// Waits until any call is held.
    pub async fn holds_any(&self) {
        let mut held = self.held.subscribe();
        held.wait_for(|held| !held.is_empty()).await.unwrap();
    }

    /// Passes, now or once it is opened.
    pub async fn pass(&self, call: &Call) {
        let mut opened = self.opened.subscribe();
        opened.mark_unchanged();
        let is_held = self.rule.lock().unwrap().as_ref().is_some_and(|rule| rule(call));
        if is_held {
            self.held.send_modify(|held| held.push(call.what()));
            opened.changed().await.unwrap();
        }
    }
}

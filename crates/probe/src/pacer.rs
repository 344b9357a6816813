//! Wakes at absolute times: a timerfd on CLOCK_MONOTONIC through the runtime's poll. Does I/O.

use std::io;
use std::os::fd::OwnedFd;

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use tokio::io::unix::AsyncFd;

/// Lateness of tokio's own timers (a 1 ms wheel) would exceed a broker's floor; this wakes within 0.1 ms.
pub(crate) struct Pacer {
    timer: AsyncFd<OwnedFd>,
}

impl Pacer {
    /// Makes the timer; within a runtime.
    pub fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        // An `OwnedFd` gives out the same open descriptor for as long as it lives: what the new one asks for.
        #[expect(deprecated, reason = "its successor is unsafe, which this workspace forbids")]
        let timer = AsyncFd::new(timer)?;
        Ok(Self { timer })
    }

    /// Waits for this absolute time; at once if it has passed. Cancel-safe.
    pub async fn wait_until(&self, at: Timespec) -> io::Result<()> {
        let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: at };
        timerfd_settime(self.timer.get_ref(), TimerfdTimerFlags::ABSTIME, &once)?;
        loop {
            let mut ready = self.timer.readable().await?;
            let mut expirations = [0; 8];
            let read = ready.try_io(|timer| Ok(rustix::io::read(timer.get_ref(), &mut expirations)?));
            match read {
                Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(done) => return done.map(drop),
                Err(_not_ready) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;

    #[tokio::test]
    async fn it_wakes_at_the_time_and_not_before() {
        let (pacer, clock) = (Pacer::new().unwrap(), Clock::starting_in(0));
        for tick in 1..20 {
            pacer.wait_until(clock.absolute(tick * 2_000_000)).await.unwrap();
            assert!(clock.now().unwrap() >= tick * 2_000_000);
        }
        pacer.wait_until(clock.absolute(0)).await.unwrap();
    }
}

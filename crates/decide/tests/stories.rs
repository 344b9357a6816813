//! Stories: scripts played in the toy world, with the transcript that a user would read.
//!
//! `STORIES=write cargo test -p decide --features toy --test stories` writes the transcripts anew.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use api::Phase;
use decide::effect::Effect;
use decide::side::Side;
use decide::step::Step;
use decide::toy::{Body, Fate, GateMood, Honest, Order, Pass, Settings, Toy};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Passes after which a command of a script gives up.
const PATIENCE: usize = 5000;

struct Story {
    body: Body<Honest>,
    out: String,
    last: String,
    hidden: usize,
}

impl Story {
    fn begin(settings: Settings) -> Result<Self, String> {
        let plan = decide::toy::plan(&settings)?;
        let body = Body::new(Toy::new(settings), plan, Honest);
        Ok(Self { body, out: String::new(), last: String::new(), hidden: 0 })
    }

    fn pass(&mut self) -> Pass {
        let pass = self.body.pass();
        let text = tell(&pass);
        // What only counts is shown once.
        let key: String = text.chars().filter(|c| !c.is_ascii_digit() && *c != ',').collect();
        if key == self.last {
            self.hidden += 1;
            return pass;
        }
        self.fold();
        let (seconds, millis) = (pass.at / 1000, pass.at % 1000);
        writeln!(self.out, "{seconds:>5}.{millis:03}  {:<19} {text}", pass.phase.as_str()).unwrap();
        self.last = key;
        pass
    }

    fn fold(&mut self) {
        if self.hidden > 0 {
            writeln!(self.out, "           ... {} more passes say the same", self.hidden).unwrap();
        }
        self.hidden = 0;
    }

    fn run(&mut self, done: impl Fn(&Self, &Pass) -> bool) -> Result<(), String> {
        for _ in 0..PATIENCE {
            let pass = self.pass();
            if done(self, &pass) {
                return Ok(());
            }
        }
        Err(format!("not within {PATIENCE} passes; transcript:\n{}", self.out))
    }

    fn command(&mut self, line: &str) -> Result<(), String> {
        self.fold();
        self.last.clear();
        writeln!(self.out, "> {line}").unwrap();
        match line.split_once(' ').unwrap_or((line, "")) {
            ("until", phase) => {
                let phase = named(phase)?;
                if self.body.phase() == phase {
                    Ok(())
                } else {
                    self.run(|story, _| story.body.phase() == phase)
                }
            }
            ("wait", reason) => self.run(|_, pass| match &pass.step {
                Step::Wait(wait) | Step::Stop(wait) => wait.reason.as_str() == reason,
                Step::Do(_) | Step::Go(_) => false,
            }),
            ("end", "") => self.run(|_, pass| matches!(pass.step, Step::Stop(_))),
            ("order", order) => {
                self.body.order(crate::order(order)?);
                Ok(())
            }
            ("take", by) => {
                self.body.toy.take(0, Side::Blue, by);
                Ok(())
            }
            ("settle", "") => {
                self.body.toy.settle(Side::Green);
                Ok(())
            }
            ("restart", "") => {
                self.body.restart();
                Ok(())
            }
            _ => Err(format!("unknown command: {line}")),
        }
    }

    fn close(mut self) -> String {
        self.fold();
        let toy = &self.body.toy;
        let confirmed = toy.truth.messages.iter().filter(|m| m.confirmed).count();
        writeln!(
            self.out,
            "\n{confirmed} messages confirmed, {} lost, {} twice without a reason, {} out of order, {} carried; {} \
             clients refused, {} connections closed",
            toy.lost().len(),
            toy.unexplained().len(),
            toy.truth.reordered,
            toy.truth.carried,
            toy.truth.refusals.len(),
            toy.truth.closed
        )
        .unwrap();
        self.out
    }
}

fn order(name: &str) -> Result<Order, String> {
    Ok(match name {
        "approve" => Order::Approve,
        "abort" => Order::Abort,
        "delete" => Order::Delete,
        "roll-back" => Order::RollBack,
        "retry" => Order::Retry,
        "pause" => Order::Pause,
        "resume" => Order::Resume,
        _ => return Err(format!("unknown order: {name}")),
    })
}

fn named(name: &str) -> Result<Phase, String> {
    Phase::ALL
        .into_iter()
        .find(|phase| phase.as_str() == name)
        .ok_or_else(|| format!("unknown phase: {name}"))
}

fn tell(pass: &Pass) -> String {
    let text = match &pass.step {
        Step::Do(_) => {
            pass.effects.iter().map(|(effect, fate)| act(effect, *fate)).collect::<Vec<_>>().join("; ")
        }
        Step::Go(phase) => format!("-> {phase}"),
        Step::Wait(wait) => format!("waits, {}: {}", wait.reason.as_str(), wait.detail),
        Step::Stop(wait) => format!("stops, {}: {}", wait.reason.as_str(), wait.detail),
    };
    masked(&text)
}

/// A plan's digest changes with every field of the spec; transcripts should not.
fn masked(text: &str) -> String {
    let digest = |word: &str| word.len() == 16 && word.chars().all(|c| c.is_ascii_hexdigit());
    let mut masked = text.to_owned();
    for word in text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| digest(word)) {
        masked = masked.replace(word, "<digest>");
    }
    masked
}

fn act(effect: &Effect, fate: Fate) -> String {
    let what = match effect {
        Effect::Point(services) => services
            .iter()
            .map(|p| format!("{} to {:?}", p.service, p.selector))
            .collect::<Vec<_>>()
            .join(", "),
        Effect::Fence { side, users } => format!("{} on {side}", users.join(", ")),
        Effect::Unfence { side, users } => {
            let told = users.iter().map(|(user, limit)| match limit {
                Some(limit) => format!("{user} ({limit})"),
                None => user.clone(),
            });
            format!("{} on {side}", told.collect::<Vec<_>>().join(", "))
        }
        Effect::Close { side, connections } => format!("{} connections on {side}", connections.len()),
        Effect::Carry { from, queues } => {
            let names = queues.iter().map(|queue| queue.name.clone()).collect::<Vec<_>>().join(", ");
            format!("{names} from {from}")
        }
        Effect::EnsureEpochUser(side) | Effect::CleanBroker(side) | Effect::RemoveEpochUsers(side) => {
            side.to_string()
        }
        _ => String::new(),
    };
    let cut = if fate == Fate::Done { String::new() } else { format!(" (cut: {fate:?})") };
    format!("{} {what}", effect.name()).trim().to_owned() + &cut
}

fn set(settings: &mut Settings, line: &str) -> Result<(), String> {
    let (key, value) = line.split_once(' ').unwrap_or((line, ""));
    let number = || value.parse().map_err(|_| format!("{key} needs a number, not {value:?}"));
    match key {
        "seed" => settings.seed = u64::try_from(number()?).unwrap_or(0),
        "gate" if value == "slow" => settings.gate = GateMood::Slow,
        "gate" if value == "silent" => settings.gate = GateMood::Silent,
        "services" => settings.services = usize::try_from(number()?).unwrap_or(1),
        "backlog" => settings.backlog = usize::try_from(number()?).unwrap_or(0),
        "soak" => settings.soak_seconds = i32::try_from(number()?).unwrap_or(0),
        "hold" => settings.hold = true,
        "timeout" => settings.timeout_seconds = i32::try_from(number()?).unwrap_or(0),
        "work" => settings.work = number()?,
        "automatic" => settings.manual = false,
        "alarm" => settings.alarm = true,
        "check" => settings.check = true,
        "straight" => settings.straight = true,
        "scale-to-zero" => settings.scale_to_zero = true,
        "missing-service" => settings.missing_service = true,
        _ => return Err(format!("unknown trait of a world: {line}")),
    }
    Ok(())
}

fn play(script: &str) -> Result<String, String> {
    let lines: Vec<&str> =
        script.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with('#')).collect();
    let mut settings = Settings::default();
    for line in lines.iter().filter_map(|line| line.strip_prefix("world ")) {
        set(&mut settings, line)?;
    }
    let mut story = Story::begin(settings)?;
    for line in lines.iter().filter(|line| !line.starts_with("world ")) {
        story.command(line)?;
    }
    Ok(story.close())
}

fn check(script: &Path) -> Result<(), String> {
    let text = std::fs::read_to_string(script).map_err(|error| error.to_string())?;
    let told = play(&text).map_err(|why| format!("{}: {why}", script.display()))?;
    let golden = script.with_extension("out");
    if std::env::var("STORIES").as_deref() == Ok("write") {
        return std::fs::write(&golden, told).map_err(|error| error.to_string());
    }
    let wanted = std::fs::read_to_string(&golden).unwrap_or_default();
    if wanted == told {
        return Ok(());
    }
    let differs = wanted.lines().zip(told.lines()).find(|(wanted, told)| wanted != told);
    let (wanted, told) = differs.unwrap_or(("(another length)", ""));
    Err(format!("{}: was\n  {wanted}\nis\n  {told}\nSTORIES=write takes it over", golden.display()))
}

#[test]
fn stories_read_as_they_did() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stories");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut scripts: Vec<PathBuf> =
        files.filter(|path| path.extension().is_some_and(|ext| ext == "txt")).collect();
    scripts.sort();
    assert!(scripts.len() >= 5, "stories are missing");
    let wrong: Vec<String> = scripts.iter().filter_map(|script| check(script).err()).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

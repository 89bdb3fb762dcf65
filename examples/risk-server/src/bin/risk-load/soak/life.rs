//! The life of the server: started, watched, ended, and started again.

use super::memory::Sample;
use super::plan::{Every, Plan};
use super::program::{Program, Running};
use super::world::{PATIENCE, Visit, World};
use super::{audit, checker};
use crate::client::Client;
use crate::{http, system, text};
use std::io;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// Between two looks at the server.
const TICK: Duration = Duration::from_millis(20);

/// Files of the server's folder: the store, the snapshot, one on its way, and one that was set aside.
const FILES: usize = 4;

pub(super) struct Life<'w> {
    world: &'w World,
    program: &'w Program,
    plan: Plan,
    rng: fastrand::Rng,
    starts: usize,
    /// Starts before which nobody damaged the snapshot.
    fair_starts: usize,
    fair: bool,
    lines: Every,
    pub(super) samples: Vec<Sample>,
    pub(super) worst_start: Duration,
    pub(super) last_log: String,
}

impl<'w> Life<'w> {
    pub(super) fn new(world: &'w World, program: &'w Program, plan: Plan, rng: fastrand::Rng) -> Self {
        Life {
            world,
            program,
            plan,
            rng,
            starts: 0,
            fair_starts: 0,
            fair: true,
            lines: Every::after(Instant::now(), plan.tell_every),
            samples: Vec::new(),
            worst_start: Duration::ZERO,
            last_log: String::new(),
        }
    }

    /// One life after the other, until the time is over. The error says how the server broke its word.
    pub(super) fn run(&mut self) -> Result<(), String> {
        loop {
            let mut running = self.start()?;
            let lived = self.live(&mut running);
            self.world.close();
            let ended = lived.and_then(|()| self.end(&mut running));
            self.last_log = running.last_lines();
            let bad = running.bad();
            ended?;
            if let Some(line) = bad {
                return Err(format!("the server logged an error: {line}"));
            }
            if self.is_over() {
                break;
            }
            self.tamper();
        }
        if self.world.fault().is_some() {
            return Ok(());
        }
        self.last_start()
    }

    fn is_over(&self) -> bool {
        self.world.is_stopping() || self.world.begun.elapsed() >= self.plan.time
    }

    /// A server that is ready. Some are killed before they are.
    fn start(&mut self) -> Result<Running, String> {
        while self.starts > 0 && self.rng.u8(..4) == 0 {
            let mut running = self.program.start()?;
            std::thread::sleep(self.worst_start.mul_f64(self.rng.f64() / 2.0));
            running.server.kill();
            self.world.counts.kills.add(1);
            self.world.counts.early_kills.add(1);
        }
        let begun = Instant::now();
        let mut running = self.program.start()?;
        let world = self.world;
        world.process.store(running.server.child.id(), Relaxed);
        let loading =
            |client: &mut Client| if self.starts > 0 { checker::while_loading(world, client) } else { Ok(()) };
        let ready = running.server.wait_until_ready(PATIENCE, loading);
        self.last_log = running.last_lines();
        ready?;
        self.worst_start = self.worst_start.max(begun.elapsed());
        Ok(running)
    }

    /// From the first check to the moment at which it is to end.
    fn live(&mut self, running: &mut Running) -> Result<(), String> {
        let begun = Instant::now();
        let visit = Visit { address: running.server.address, start: self.starts };
        if self.starts == 0 {
            self.put_stable(visit)?;
        } else {
            audit::run(self.world, visit, &mut self.rng)?;
            self.count_start(running);
        }
        self.starts += 1;
        self.world.open(visit);

        let until = self.plan.kill_every.mul_f64(0.25 + 1.5 * self.rng.f64());
        let mut audits = Every::after(begun, self.plan.audit_every);
        let mut samples = Every::after(begun, self.plan.sample_every);
        let mut client = Client::new(visit.address, PATIENCE);
        let mut rebuilds = 0;
        loop {
            if self.is_over() {
                break;
            }
            if begun.elapsed() >= until && self.world.begun.elapsed() < self.plan.kill_until {
                break;
            }
            if let Some(status) = running.server.ended() {
                return Err(format!("the server ended by itself: {status}"));
            }
            if samples.is_due() {
                self.sample(running, visit, &mut client, begun, &mut rebuilds)?;
            }
            if audits.is_due() {
                audit::run(self.world, visit, &mut self.rng)?;
            }
            if self.lines.is_due() {
                self.tell();
            }
            std::thread::sleep(TICK);
        }
        if self.world.fault().is_none() && self.rng.bool() {
            audit::run(self.world, visit, &mut self.rng)?;
        }
        Ok(())
    }

    fn put_stable(&self, visit: Visit) -> Result<(), String> {
        let body = self.world.stable.join("\n");
        let mut client = Client::new(visit.address, PATIENCE);
        let answer = client.ask(&http::with_body("POST", "/v1/keys", body.as_bytes()));
        let answer = answer.map_err(|error| format!("the first bulk load was not answered: {error}"))?;
        let added = answer.json()["added"].as_u64();
        if answer.status == 200 && added == Some(self.world.stable.len() as u64) {
            Ok(())
        } else {
            Err(format!("the first bulk load was answered {}: {}", answer.status, answer.text()))
        }
    }

    fn count_start(&mut self, running: &Running) {
        let from_snapshot = running.from().is_some_and(|from| from.starts_with("Snapshot"));
        let counts = &self.world.counts;
        if from_snapshot { &counts.from_snapshot } else { &counts.by_bulk_load }.add(1);
        self.fair_starts += usize::from(self.fair);
    }

    fn sample(
        &mut self,
        running: &Running,
        visit: Visit,
        client: &mut Client,
        begun: Instant,
        rebuilds: &mut u64,
    ) -> Result<(), String> {
        let stats = client.get("/v1/stats").map_err(|error| format!("the stats were not answered: {error}"))?.json();
        let (keys, seen) = (stats["keys"].as_u64().unwrap_or(0), stats["rebuilds"].as_u64().unwrap_or(0));
        self.world.counts.rebuilds.add(usize::try_from(seen.saturating_sub(*rebuilds)).unwrap_or(0));
        *rebuilds = seen;
        let (disk, files) = system::disk(&self.program.folder);
        if files > FILES {
            return Err(format!("there are {files} files in the server's folder; {FILES} are expected at the most"));
        }
        let memory = system::memory(running.server.child.id());
        let (at, age) = (self.world.begun.elapsed(), begun.elapsed());
        self.samples.push(Sample { at, age, start: visit.start, keys, memory, disk });
        Ok(())
    }

    fn tell(&self) {
        let last = self.samples.last();
        let held = last.map_or_else(String::new, |sample| {
            let memory = sample.memory.map_or_else(|| "-".into(), text::mebibytes);
            format!("; {} keys, {memory} memory, {} disk", text::count(sample.keys), text::mebibytes(sample.disk))
        });
        eprintln!("{:>6.1} s  {}{held}", self.world.begun.elapsed().as_secs_f64(), self.world.counts.line());
    }

    /// By SIGKILL mostly; by SIGTERM sometimes, and in the end.
    fn end(&mut self, running: &mut Running) -> Result<(), String> {
        if !self.is_over() && self.rng.u8(..4) != 0 {
            running.server.kill();
            self.world.counts.kills.add(1);
            return Ok(());
        }
        let cannot = |error: io::Error| format!("the server did not end when it was asked to: {error}");
        system::ask_to_end(&mut running.server.child).map_err(cannot)?;
        let status = running.server.wait(PATIENCE).map_err(cannot)?;
        self.world.counts.shutdowns.add(1);
        // Where there is no SIGTERM, it was killed.
        if status.success() || cfg!(not(unix)) { Ok(()) } else { Err(format!("the server ended with {status}")) }
    }

    /// What may happen to a snapshot while nobody looks: it must be noticed, and only cost time.
    fn tamper(&mut self) {
        let snapshot = self.program.snapshot();
        self.fair = false;
        match self.rng.u8(..8) {
            // There may be none.
            0 => drop(std::fs::remove_file(snapshot)),
            1 => {
                if let Ok(mut bytes) = std::fs::read(&snapshot)
                    && !bytes.is_empty()
                {
                    let at = self.rng.usize(..bytes.len());
                    bytes[at] ^= 1 << self.rng.u8(..8);
                    drop(std::fs::write(&snapshot, bytes));
                }
            }
            _ => self.fair = true,
        }
    }

    /// What was saved at the end is there after it.
    fn last_start(&mut self) -> Result<(), String> {
        self.fair = true;
        let mut running = self.start()?;
        let visit = Visit { address: running.server.address, start: self.starts };
        let audited = audit::run(self.world, visit, &mut self.rng);
        self.count_start(&running);
        let ended = audited.and_then(|()| self.end(&mut running));
        self.last_log = running.last_lines();
        ended?;
        let counts = &self.world.counts;
        if counts.from_snapshot.get() == 0 && self.fair_starts >= 4 {
            return Err(format!("none of {} starts was from a snapshot", self.fair_starts));
        }
        Ok(())
    }
}

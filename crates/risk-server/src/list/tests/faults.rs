//! A store that fails, at each of its operations in turn.

use super::*;
use redb::backends::FileBackend;
use redb::{Database, StorageBackend};
use std::io;
use std::sync::atomic::AtomicI64;

/// A file whose operations fail on demand.
#[derive(Debug)]
struct Faulty {
    file: FileBackend,
    switch: Arc<Switch>,
}

/// Decides when operations that change the file fail.
#[derive(Debug)]
struct Switch {
    /// This many succeed, then one fails.
    succeed: AtomicI64,
    /// All that follow fail too.
    for_good: AtomicI64,
}

/// Data with this in it is never written.
const UNLUCKY: &[u8] = b"unlucky";

impl Switch {
    fn new() -> Arc<Self> {
        Arc::new(Switch { succeed: AtomicI64::new(i64::MAX), for_good: AtomicI64::new(0) })
    }

    fn fail_once_after(&self, operations: i64) {
        self.for_good.store(0, Ordering::SeqCst);
        self.succeed.store(operations, Ordering::SeqCst);
    }

    fn fail_after(&self, operations: i64) {
        self.for_good.store(1, Ordering::SeqCst);
        self.succeed.store(operations, Ordering::SeqCst);
    }

    /// Ends the failures, and returns whether there were any.
    fn heal(&self) -> bool {
        self.succeed.swap(i64::MAX, Ordering::SeqCst) < 0
    }

    fn operation(&self) -> io::Result<()> {
        let left = self.succeed.fetch_sub(1, Ordering::SeqCst);
        if left == 0 || left < 0 && self.for_good.load(Ordering::SeqCst) == 1 {
            return Err(io::Error::other("the disk is on fire"));
        }
        Ok(())
    }
}

impl StorageBackend for Faulty {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }
    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.file.read(offset, out)
    }
    fn set_len(&self, len: u64) -> io::Result<()> {
        self.switch.operation()?;
        self.file.set_len(len)
    }
    fn sync_data(&self) -> io::Result<()> {
        self.switch.operation()?;
        self.file.sync_data()
    }
    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.switch.operation()?;
        if data.windows(UNLUCKY.len()).any(|bytes| bytes == UNLUCKY) {
            return Err(io::Error::other("no space left for this"));
        }
        self.file.write(offset, data)
    }
    fn close(&self) -> io::Result<()> {
        self.file.close()
    }
}
fn open_with(options: Options, switch: &Arc<Switch>) -> List {
    let (path, switch) = (options.store(), Arc::clone(switch));
    let opener = move || {
        let file = std::fs::OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path)?;
        let backend = Faulty { file: FileBackend::new(file)?, switch: Arc::clone(&switch) };
        Database::builder().create_with_backend(backend)
    };
    open::open(options, Box::new(opener), |_| {}).unwrap().list
}

/// Makes changes until the store works again: some are refused before a store is opened once more.
async fn make(list: &List, changes: Vec<Change>) {
    while let Err(error) = list.change(changes.clone()).await {
        assert!(matches!(error, ChangeError::Store(_)), "{error}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// 20 changes, and the list before and after them.
fn changes(round: u64) -> (Vec<Change>, BTreeSet<u64>, BTreeSet<u64>) {
    let before: BTreeSet<u64> = (0..30).collect();
    let after = (round % 3..30).step_by(3).fold(before.clone(), |mut after, key| {
        after.remove(&key);
        after.insert(key + 30);
        after
    });
    let changes = before.difference(&after).map(|&key| delete(key));
    let changes = changes.chain(after.difference(&before).map(|&key| put(key)));
    (changes.collect(), before, after)
}

fn is_one_of(list: &List, before: &BTreeSet<u64>, after: &BTreeSet<u64>) -> bool {
    let first = after.difference(before).next().unwrap();
    let made = list.confirm(&[&key(*first)]).unwrap()[0];
    check(list, if made { after } else { before }, 70);
    made
}

#[tokio::test]
async fn after_one_failure_the_front_and_the_store_agree_whether_the_changes_were_made_or_not() {
    let (mut refused, mut made) = (0, 0);
    let folder = folder();
    let switch = Switch::new();
    let list = open_with(options(folder.path()), &switch);
    for round in 0.. {
        let (changes, before, after) = changes(round);
        make(&list, (0..30).map(put).chain((30..70).map(delete)).collect()).await;
        check(&list, &before, 70);
        switch.fail_once_after(round as i64);
        let result = list.change(changes).await;
        let failed = switch.heal();
        match result {
            Ok(_) => {
                check(&list, &after, 70);
                made += u64::from(failed);
            }
            Err(ChangeError::Store(_)) => {
                check(&list, &before, 70);
                refused += 1;
            }
            Err(error) => panic!("the store can be opened at once: {error}"),
        }
        if !failed {
            // As many operations as there are.
            break;
        }
    }
    assert!(refused > 3 && made > 0, "{refused} refused, {made} made although their commit failed");
    assert_eq!(list.stats().totals.store_reopenings, refused + made);
    assert!(list.stats().totals.write_failures >= refused, "some were refused in a pause");
    list.close().await.unwrap();
}

#[tokio::test]
async fn while_the_store_cannot_be_opened_the_front_has_what_both_outcomes_need() {
    let folder = folder();
    let switch = Switch::new();
    let list = open_with(options(folder.path()), &switch);
    let (mut in_doubt, mut made) = (0, 0);
    for round in 0.. {
        let (changes, before, after) = changes(round);
        make(&list, (0..30).map(put).chain((30..70).map(delete)).collect()).await;
        check(&list, &before, 70);
        switch.fail_after(round as i64);
        let result = list.change(changes).await;
        let again = list.change(vec![put(65)]).await;
        let all: Vec<u64> = before.union(&after).copied().collect();
        match result {
            Ok(_) => {
                // The failure, if any, came after the commit.
                switch.heal();
                make(&list, vec![delete(65)]).await;
                check(&list, &after, 70);
                break;
            }
            Err(ChangeError::InDoubt(_)) => {
                in_doubt += 1;
                assert!(all.iter().all(|&number| list.may_be_listed(&key(number))));
            }
            Err(ChangeError::Store(_)) => {}
            Err(error) => panic!("{error}"),
        }
        assert!(matches!(again, Err(ChangeError::Store(_))), "{again:?}");
        assert!(list.save_snapshot().await.is_err(), "no copy of a filter in doubt");
        assert!(list.begin_replacement().await.is_err());
        switch.heal();
        // The first one that gets through ends the doubt.
        make(&list, vec![delete(65)]).await;
        made += usize::from(is_one_of(&list, &before, &after));
    }
    assert!(in_doubt > 0 && made > 0, "{in_doubt} in doubt, {made} of them made in the end");
    let stats = list.stats();
    list.close().await.unwrap();
    let reopened = open(&options(folder.path()));
    assert_eq!(reopened.how, Start::Snapshot { changes: 0 });
    assert_eq!(reopened.keys, stats.totals.keys);
    reopened.list.close().await.unwrap();
}

#[tokio::test]
async fn a_replacement_that_fails_leaves_one_list_or_the_other_and_no_key_of_both_is_missed() {
    let folder = folder();
    let switch = Switch::new();
    let list = open_with(options(folder.path()), &switch);
    let (mut kept, mut replaced) = (0, 0);
    for round in 0.. {
        let for_good = round % 2 == 1;
        let (_, before, after) = changes(round);
        make(&list, (0..30).map(put).chain((30..70).map(delete)).collect()).await;
        let mut replacement = list.begin_replacement().await.unwrap();
        replacement.add(after.iter().map(|&number| key(number).into()).collect()).await.unwrap();
        if for_good {
            switch.fail_after(round as i64 / 2);
        } else {
            switch.fail_once_after(round as i64 / 2);
        }
        let result = replacement.commit().await;
        for number in before.intersection(&after) {
            assert!(list.may_be_listed(&key(*number)));
        }
        let failed = switch.heal();
        // A chore may have failed after the commit.
        make(&list, vec![put(69), delete(69)]).await;
        make(&list, vec![put(69)]).await;
        make(&list, vec![delete(69)]).await;
        let made = is_one_of(&list, &before, &after);
        assert!(list.0.shared.front.0.load().next.is_none());
        match result {
            Ok(_) => assert!(made),
            Err(ChangeError::Store(_)) => assert!(!made),
            Err(ChangeError::InDoubt(_)) => assert!(for_good),
            Err(error) => panic!("{error}"),
        }
        kept += usize::from(!made);
        replaced += usize::from(made && failed);
        if !failed {
            break;
        }
    }
    assert!(kept > 3 && replaced > 1, "{kept} kept, {replaced} replaced although something failed");
    list.close().await.unwrap();
}

#[tokio::test]
async fn a_part_of_a_new_list_that_is_not_stored_ends_its_replacement() {
    let folder = folder();
    let switch = Switch::new();
    let list = open_with(options(folder.path()), &switch);
    make(&list, vec![put(1)]).await;
    // So many that they are stored at once.
    let many = |first: u64| (first..first + 140_000).map(|number| key(number).into()).collect();
    let mut replacement = list.begin_replacement().await.unwrap();
    replacement.add(many(10)).await.unwrap();
    switch.fail_once_after(0);
    assert!(matches!(replacement.add(many(200_000)).await, Err(ChangeError::Store(_))));
    assert!(matches!(replacement.add(many(10)).await, Err(ChangeError::Incomplete)));
    assert!(matches!(replacement.commit().await, Err(ChangeError::Incomplete)));
    check(&list, &BTreeSet::from([1]), 20);
    assert_eq!(replace(&list, [2, 3]).await, 2);
    check(&list, &BTreeSet::from([2, 3]), 20);
    list.close().await.unwrap();
}

#[tokio::test]
async fn a_store_that_fails_again_and_again_is_not_opened_each_time() {
    let folder = folder();
    let list = open_with(options(folder.path()), &Switch::new());
    let model: BTreeSet<u64> = (0..50).collect();
    list.change((0..50).map(put).collect()).await.unwrap();
    for _ in 0..50 {
        let unlucky = Change { key: "unlucky".into(), put: true };
        let error = list.change(vec![put(60), unlucky, delete(1)]).await.unwrap_err();
        assert!(matches!(error, ChangeError::Store(_)), "{error}");
        // It can be read meanwhile.
        check(&list, &model, 70);
    }
    let opened = list.stats().totals.store_reopenings;
    assert!((1..25).contains(&opened), "opened {opened} times");
    make(&list, vec![put(60)]).await;
    check(&list, &model.into_iter().chain([60]).collect(), 70);
    list.close().await.unwrap();
}

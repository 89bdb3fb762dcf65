//! A store that fails, at each of its operations in turn.

use super::faulty::{Faulty, Switch};
use super::*;
use redb::Database;
use redb::backends::FileBackend;

fn open_with(options: Options, switch: &Arc<Switch>) -> List {
    let (path, switch) = (options.store(), Arc::clone(switch));
    let opener = move || {
        let file = std::fs::OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path)?;
        let backend = Faulty { file: FileBackend::new(file)?, switch: Arc::clone(&switch) };
        Database::builder().create_with_backend(backend)
    };
    List::open_with(options, Box::new(opener), |_| {}).unwrap().list
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
    // Too small, so that some keys are in the overflow; no larger filter comes in between.
    let list = open_with(options(folder.path(), 10), &switch);
    list.0.shared.closing.store(true, Ordering::Relaxed);
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
    assert_eq!(list.stats().store_reopenings, refused + made);
    assert!(list.stats().write_failures >= refused, "some were refused in a pause");
    list.close().await.unwrap();
}

#[tokio::test]
async fn while_the_store_cannot_be_opened_the_front_has_what_both_outcomes_need() {
    let folder = folder();
    let switch = Switch::new();
    let list = open_with(options(folder.path(), 1000), &switch);
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
    let reopened = open(&options(folder.path(), 1000));
    assert_eq!(reopened.how, Start::Snapshot { changes: 0 });
    assert_eq!(reopened.keys, stats.keys);
    reopened.list.close().await.unwrap();
}

#[tokio::test]
async fn a_replacement_that_fails_leaves_one_list_or_the_other_and_no_key_of_both_is_missed() {
    let folder = folder();
    let switch = Switch::new();
    let list = open_with(options(folder.path(), 100), &switch);
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
        assert!(list.0.shared.front.is_settled());
        match result {
            Ok(_) => assert!(made),
            Err(ReplaceError::Store(_)) => assert!(!made),
            Err(ReplaceError::InDoubt(_)) => assert!(for_good),
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
    let list = open_with(options(folder.path(), 100), &switch);
    make(&list, vec![put(1)]).await;
    // So many that they are stored at once.
    let many = |first: u64| (first..first + 140_000).map(|number| key(number).into()).collect();
    let mut replacement = list.begin_replacement().await.unwrap();
    replacement.add(many(10)).await.unwrap();
    switch.fail_once_after(0);
    assert!(matches!(replacement.add(many(200_000)).await, Err(ReplaceError::Store(_))));
    assert!(matches!(replacement.add(many(10)).await, Err(ReplaceError::Incomplete)));
    assert!(matches!(replacement.commit().await, Err(ReplaceError::Incomplete)));
    check(&list, &BTreeSet::from([1]), 20);
    let mut replacement = list.begin_replacement().await.unwrap();
    replacement.add(vec!["b".into()]).await.unwrap();
    switch.fail_once_after(0);
    assert!(matches!(replacement.commit().await, Err(ReplaceError::Store(_))));
    check(&list, &BTreeSet::from([1]), 20);
    let mut replacement = list.begin_replacement().await.unwrap();
    replacement.add(vec!["a".into(), "d".into(), "a".into()]).await.unwrap();
    assert_eq!(replacement.commit().await.unwrap(), 2);
    assert_eq!(list.confirm(&["a", "b", "c", "d", &key(1)]).unwrap(), [true, false, false, true, false]);
    list.close().await.unwrap();
}

#[tokio::test]
async fn a_store_that_fails_again_and_again_is_not_opened_each_time() {
    let folder = folder();
    let list = open_with(options(folder.path(), 100), &Switch::new());
    let mut model: BTreeSet<u64> = (0..50).collect();
    list.change((0..50).map(put).collect()).await.unwrap();
    for round in 0..3 {
        let before = list.stats().store_reopenings;
        for _ in 0..50 {
            let error = list.change(vec![put(60), Change::Put("unlucky".into()), delete(1)]).await.unwrap_err();
            assert!(matches!(error, ChangeError::Store(_)), "{error}");
            // It can be read meanwhile.
            check(&list, &model, 70);
        }
        let opened = list.stats().store_reopenings - before;
        assert!((1..25).contains(&opened), "opened {opened} times");
        make(&list, vec![put(60 + round)]).await;
        model.insert(60 + round);
        check(&list, &model, 70);
        make(&list, vec![delete(60 + round)]).await;
        model.remove(&(60 + round));
        check(&list, &model, 70);
    }
    list.close().await.unwrap();
}

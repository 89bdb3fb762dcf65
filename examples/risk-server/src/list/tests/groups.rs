//! Changes that are made together.

use super::*;

/// All sequences of changes of two keys up to a length, on each state of the list before.
#[tokio::test]
async fn the_front_is_exact_after_every_sequence_of_changes_in_one_transaction() {
    let folder = tempfile::tempdir().unwrap();
    let list = List::open(options(&folder, 100), |_| {}).unwrap().list;
    let mut sequences = vec![vec![]];
    for _ in 0..4 {
        let longer = sequences
            .iter()
            .flat_map(|sequence: &Vec<usize>| (0..4).map(move |change| [sequence.as_slice(), &[change]].concat()));
        let longer: Vec<Vec<usize>> = longer.collect();
        sequences.extend(longer);
    }
    sequences.sort();
    sequences.dedup();
    assert_eq!(sequences.len(), 1 + 4 + 16 + 64 + 256);
    for before in 0..4 {
        for sequence in &sequences {
            let mut model: HashSet<usize> = (0..2).filter(|number| before >> number & 1 == 1).collect();
            let state = (0..2).map(|number| if model.contains(&number) { put(number) } else { delete(number) });
            list.change(state.collect()).await.unwrap();
            let change = |what: &usize| if what & 1 == 1 { put(what >> 1) } else { delete(what >> 1) };
            let expected = sequence.iter().map(|what| match what & 1 {
                1 => model.insert(what >> 1),
                _ => model.remove(&(what >> 1)),
            });
            let expected: Vec<bool> = expected.collect();
            let answers = list.change(sequence.iter().map(change).collect()).await.unwrap();
            assert_eq!(answers, expected, "{sequence:?} on {before:02b}");
            check(&list, &model, 2);
            let side = list.0.shared.front.current();
            for number in 0..2 {
                assert_eq!(side.filter.count(&key(number)), usize::from(model.contains(&number)), "{sequence:?}");
            }
        }
    }
    list.close().await.unwrap();
}

#[tokio::test]
async fn changes_that_change_nothing_are_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let list = List::open(options(&folder, 100), |_| {}).unwrap().list;
    assert_eq!(list.change(vec![put(1), put(1), delete(2)]).await.unwrap(), [true, false, false]);
    let sequence = || list.0.shared.counters.sequence.load(Ordering::Relaxed);
    assert_eq!(sequence(), 1);
    assert_eq!(list.change(vec![put(1), put(3), delete(3), delete(2)]).await.unwrap(), [false, true, true, false]);
    assert_eq!(list.change(vec![]).await.unwrap(), [false; 0]);
    assert_eq!(sequence(), 1);
    check(&list, &HashSet::from([1]), 4);
    list.close().await.unwrap();
}

#[tokio::test]
async fn one_key_that_is_none_refuses_all_that_came_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let list = List::open(options(&folder, 100), |_| {}).unwrap().list;
    for bad in [Change::Put("".into()), Change::Delete("a\n".into()), Change::Put("x".repeat(1025).into())] {
        let error = list.change(vec![put(1), put(2), bad, put(3)]).await.unwrap_err();
        assert!(matches!(error, ChangeError::Key { index: 2, .. }), "{error}");
    }
    check(&list, &HashSet::new(), 4);
    let longest: Box<str> = "x".repeat(MAX_KEY_BYTES).into();
    assert_eq!(list.change(vec![Change::Put(longest.clone())]).await.unwrap(), [true]);
    assert_eq!(list.confirm(&[&longest, &longest[1..]]).unwrap(), [true, false]);
    list.close().await.unwrap();
}

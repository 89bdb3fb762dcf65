//! Changes one after the other: exact answers, and an exact front after each.

use super::*;

/// All sequences of changes of two keys up to a length, on each state of the list before.
#[tokio::test]
async fn the_front_is_exact_after_every_sequence_of_changes_in_one_transaction() {
    let folder = folder();
    let list = open(&options(folder.path())).list;
    let mut sequences: BTreeSet<Vec<u64>> = BTreeSet::from([vec![]]);
    for _ in 0..4 {
        let longer =
            sequences.iter().flat_map(|sequence| (0..4).map(move |change| [sequence.as_slice(), &[change]].concat()));
        let longer: Vec<_> = longer.collect();
        sequences.extend(longer);
    }
    assert_eq!(sequences.len(), 1 + 4 + 16 + 64 + 256);
    for before in 0..4 {
        for sequence in &sequences {
            let mut model: BTreeSet<u64> = (0..2).filter(|number| before >> number & 1 == 1).collect();
            let state = (0..2).map(|number| if model.contains(&number) { put(number) } else { delete(number) });
            list.change(state.collect()).await.unwrap();
            let change = |what: &u64| if what & 1 == 1 { put(what >> 1) } else { delete(what >> 1) };
            let expected: Vec<bool> = sequence
                .iter()
                .map(|what| if what & 1 == 1 { model.insert(what >> 1) } else { model.remove(&(what >> 1)) })
                .collect();
            let answers = list.change(sequence.iter().map(change).collect()).await.unwrap();
            assert_eq!(answers, expected, "{sequence:?} on {before:02b}");
            check(&list, &model, 2);
            let filter = list.0.shared.front.current();
            for number in 0..2 {
                assert_eq!(filter.count(&key(number)), usize::from(model.contains(&number)), "{sequence:?}");
            }
        }
    }
    // What changes nothing is not written.
    let sequence = || list.stats().totals.changes_since_snapshot;
    list.change(vec![put(0), delete(1)]).await.unwrap();
    let before = sequence();
    assert_eq!(list.change(vec![put(0), put(1), delete(1)]).await.unwrap(), [false, true, true]);
    assert_eq!(list.change(vec![]).await.unwrap(), [false; 0]);
    assert_eq!(sequence(), before);
    check(&list, &BTreeSet::from([0]), 4);
    list.close().await.unwrap();
}

#[tokio::test]
async fn what_the_filter_has_no_room_for_is_refused_as_a_whole_and_what_is_there_stays() {
    let folder = folder();
    let options = Options { max_capacity: 20_000, ..options(folder.path()) };
    let list = open(&options).list;
    let mut model = BTreeSet::new();
    // Requests that wait for each other meet in one transaction; some of them have room.
    let full = 'full: loop {
        let first = model.len() as u64;
        let requests =
            (0..4).map(|part| list.change((first + part * 500..first + part * 500 + 500).map(put).collect()));
        for (part, made) in (0..).zip(futures_util::future::join_all(requests).await) {
            match made {
                Ok(made) => assert!(made.into_iter().all(|made| made)),
                Err(error) => {
                    assert!(error.to_string().ends_with(
                        "the filter is full: no relocation makes room for this key; the list was not changed"
                    ));
                    break 'full first + part * 500;
                }
            }
            model.extend(first + part * 500..first + part * 500 + 500);
        }
    };
    // Later ones of the four may have been made.
    let later = list.stats().totals.keys - model.len() as u64;
    list.change((full..full + 2000).map(delete).collect()).await.unwrap();
    check(&list, &model, full + 2000);
    assert!(later <= 1500 && list.stats().totals.write_failures > 0);
    // Deletes are made all the same, and make room.
    list.change((0..10_000).map(delete).collect()).await.unwrap();
    assert_eq!(list.change((full..full + 500).map(put).collect()).await.unwrap(), [true; 500]);
    model = model.range(10_000..).copied().chain(full..full + 500).collect();
    check(&list, &model, full + 500);
    list.close().await.unwrap();
}

/// A fingerprint is gone, as by a fault of the memory or of this code.
#[tokio::test]
async fn a_filter_that_lacks_a_key_is_found_out_and_replaced() {
    let folder = folder();
    let list = open(&options(folder.path())).list;
    list.change((0..100).map(put).collect()).await.unwrap();
    let filter = list.0.shared.front.current();
    assert!(filter.remove(&key(7)) && filter.remove(&key(8)));
    assert_eq!(list.change(vec![delete(7)]).await.unwrap(), [true]);
    assert_eq!((list.stats().totals.filter_faults, list.stats().filter.len), (1, 99));
    assert!(list.may_be_listed(&key(8)));
    list.close().await.unwrap();
}

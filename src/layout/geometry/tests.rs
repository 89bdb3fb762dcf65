use super::*;
use crate::layout::Extent;
use proptest::prelude::*;

fn geometry(shards: u64, half_buckets: u32, width: u32) -> Geometry {
    let plan = Plan { shards: shards as usize, ..Plan::one_shard(width, half_buckets * 2, 4) };
    Geometry::new(&plan)
}

proptest! {
    #[test]
    fn every_key_has_two_buckets_that_lead_to_each_other(
        hash: u64,
        shards in prop_oneof![1u64..=1024, 1u64..100_000],
        // In small shards, an even sum would be noticed.
        half_buckets in prop_oneof![1u32..=16, 1u32..=1 << 15],
        width in 4u32..=32,
    ) {
        let (geometry, mixed) = (geometry(shards, half_buckets, width), Mixed::of(hash));
        let (shard, key) = geometry.locate(mixed);
        prop_assert!((shard as u64) < shards);
        prop_assert_eq!(geometry.shard(mixed), shard);
        prop_assert!(key.first.get() < half_buckets * 2);
        prop_assert!(key.second.get() < half_buckets * 2);
        prop_assert!((1..=u32::MAX >> (32 - width)).contains(&key.fingerprint.get()));
        prop_assert!(!key.coincides());
        prop_assert_eq!(geometry.alternates().alternate(key.fingerprint, key.first), key.second);
        prop_assert_eq!(geometry.alternates().alternate(key.fingerprint, key.second), key.first);
        prop_assert!(!geometry.is_narrow() || geometry.locate_narrow(mixed) == geometry.locate_flat::<false>(mixed));
        prop_assert_eq!(Mixed::unmix(mixed.0), hash);
        prop_assert_eq!(Mixed::of(Mixed::unmix(hash)), Mixed(hash));
    }

    #[test]
    fn in_one_shard_each_class_has_a_hash_that_leads_to_each_of_its_buckets(
        hash: u64,
        half_buckets in 1u32..=1 << 15,
        width in 4u32..=32,
    ) {
        let (geometry, mixed) = (geometry(1, half_buckets, width), Mixed::of(hash));
        prop_assert_eq!(geometry.locate_flat::<true>(mixed), geometry.locate_flat::<false>(mixed));
        let class = geometry.locate(mixed).1;
        prop_assert!(geometry.leading_to(class).is_some() && geometry.leading_to(class.turned()).is_some());
        prop_assert_eq!(geometry.leading_to(Class { second: class.first, ..class }), None);
    }
}

#[test]
fn buckets_are_drawn_from_32_bits_as_long_as_that_is_even() {
    let largest = 1 << 15;
    assert!(geometry(1, 1, 8).is_narrow() && geometry(1024, largest, 8).is_narrow());
    assert!(!geometry(1025, largest, 8).is_narrow() && !geometry(1 << 20, largest, 8).is_narrow());
    let lower_bits_draw = |geometry: Geometry| {
        let first = |mixed| geometry.locate_flat::<false>(Mixed(mixed)).first;
        let low = u64::from(u32::MAX);
        (0..1 << 10).map(Mixed::of).any(|Mixed(mixed)| first(mixed & !low) != first(mixed | low))
    };
    assert!(!lower_bits_draw(geometry(1024, largest, 8)) && lower_bits_draw(geometry(1025, largest, 8)));
}

proptest! {
    #[test]
    fn a_key_of_a_growing_filter_has_buckets_in_every_table_that_lead_to_each_other(
        hash: u64,
        shards in 1u64..2000,
        half_bases in 1u32..=1 << 12,
        core in 4u32..=15,
        cell_bits in 1u32..=12,
        extension_bits in 0u32..=3,
    ) {
        let (reserve_bits, shards) = (cell_bits + extension_bits, if extension_bits > 0 { 1 } else { shards });
        let buckets = (half_bases * 2) << extension_bits;
        let shape = Plan::one_shard(core + reserve_bits, buckets, 4);
        let plan = Plan { shards: shards as usize, reserve_bits, extension_bits, ..shape };
        let (geometry, mixed) = (Geometry::new(&plan), Mixed::of(hash));
        let place = geometry.cell_place(mixed);
        let CellPlace { cell, class } = place;
        prop_assert_eq!(cell >> cell_bits, geometry.shard(mixed));
        prop_assert_eq!(cell & ((1 << cell_bits) - 1), (class.fingerprint.get() >> core) as usize & ((1 << cell_bits) - 1));
        let whole = |place: CellPlace| CellPlace { class: geometry.whole(place.class), ..place };
        prop_assert_eq!(whole(geometry.cell_place_as::<false, true>(mixed)), place);
        prop_assert!(shards > 1 || whole(geometry.cell_place_as::<true, true>(mixed)) == place);
        prop_assert!(shards > 1 || whole(geometry.cell_place_narrow::<true, true>(mixed)) == place);
        prop_assert_eq!(geometry.locate(mixed).1.first, class.first);
        if extension_bits == 0 {
            prop_assert!(!geometry.is_narrow() || geometry.cell_place_narrow::<false, false>(mixed) == place);
            prop_assert!(shards > 1 || geometry.cell_place_as::<true, false>(mixed) == place);
            prop_assert!(shards > 1 || geometry.cell_place_narrow::<true, false>(mixed) == place);
        }
        prop_assert!(class.first.get() < buckets && class.second.get() < buckets && !class.coincides());
        prop_assert!(shards > 1 || geometry.leading_to(class).is_some_and(|mixed| geometry.cell_place(mixed).class == class));
        for depth in 0..=reserve_bits {
            for dropped in 0..=depth {
                let extent = Extent { first_cell: cell / plan.cells_at(depth) * plan.cells_at(depth), depth, dropped };
                let leaf = plan.leaf(&extent);
                let (table, mask) = (Geometry::new(&leaf), u32::MAX >> (32 - core - reserve_bits + dropped));
                let stored = class.fingerprint.lower(mask);
                let shift = extension_bits - plan.level(&extent);
                let [first, second] = [class.first, class.second].map(|bucket| Bucket(bucket.0 >> shift));
                prop_assert!(stored.get() > 0 && first.get() < leaf.buckets && first != second);
                prop_assert_eq!(table.alternates().alternate(stored, first), second);
                prop_assert_eq!(table.alternates().alternate(stored, second), first);
                prop_assert_eq!(geometry.cell_place_of(&plan, &extent, stored, first), place);
                let turned = CellPlace { cell, class: class.turned() };
                prop_assert_eq!(geometry.cell_place_of(&plan, &extent, stored, second), turned);
                let implied = [first, second].map(|at| geometry.known_by_bucket(&plan, &extent, stored, at));
                let known = class.fingerprint.get() & !(u32::MAX >> (32 - core - reserve_bits + plan.level(&extent)));
                prop_assert_eq!(implied, [known; 2]);
                if depth < extension_bits {
                    // The destination of a refill.
                    let bit = stored.get() >> (core + reserve_bits - depth - 1) & 1;
                    for (bucket, next) in [(first, class.first), (second, class.second)] {
                        let goes = bit ^ u32::from(geometry.alternates().is_apart(stored.get(), bucket, depth));
                        prop_assert_eq!(next.0 >> (shift - 1), bucket.0 << 1 | goes);
                    }
                }
            }
        }
    }
}

/// All pairs of core and reserve are equally frequent.
#[test]
fn the_reserve_does_not_depend_on_the_core() {
    let plan = Plan { reserve_bits: 4, ..Plan::one_shard(8, 16, 4) };
    let (geometry, mut counts) = (Geometry::new(&plan), [0_u32; 256]);
    for hash in 0..480_000 {
        counts[geometry.cell_place(Mixed::of(hash)).class.fingerprint.get() as usize] += 1;
    }
    for (fingerprint, count) in counts.into_iter().enumerate() {
        let expected = if fingerprint % 16 == 0 { 0.0 } else { 2000.0 };
        // 8 standard deviations of a fair draw.
        assert!((f64::from(count) - expected).abs() <= 8.0 * expected.sqrt(), "{count} of {fingerprint}");
    }
}

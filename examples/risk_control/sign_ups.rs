//! What the workers ask, prepared before any clock starts.

use crate::addresses;
use crate::list::List;
use crate::made::MadeKey;
use fastrand::Rng;

/// How many sign-ups are prepared; the workers go through them again and again, each from another place.
const PREPARED: usize = 1 << 20;

/// One listed domain in this many.
const LISTED_ONE_IN: usize = 4;

/// One made key in this many listed ones, if there are any.
const MADE_ONE_IN: usize = 2;

/// The part of the list that the writer takes off and puts back: one key in this many.
const CHURNED_ONE_IN: usize = 10;

/// What is known about a domain, whatever the filter says.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    /// On the list from beginning to end. "No" is an error.
    Stays,
    /// Taken off and put back meanwhile. Both answers are right.
    Comes,
    /// Never on the list. "Yes" is a false positive.
    Unlisted,
}

pub(crate) struct SignUp {
    /// A copy next to the others', as the address is at hand when somebody signs up.
    pub(crate) domain: Box<str>,
    pub(crate) kind: Kind,
}

pub(crate) struct SignUps<'t> {
    pub(crate) all: Vec<SignUp>,
    /// The domains that the writer may change.
    pub(crate) churned: Vec<&'t str>,
}

impl<'t> SignUps<'t> {
    /// What is asked of a list, of domains or of addresses, and of this many made keys besides it, which all stay.
    pub(crate) fn prepare(list: &List<'t>, of_addresses: bool, made: usize) -> Self {
        let unlisted = if of_addresses { addresses::unlisted } else { unlisted };
        let mut random = Rng::with_seed(1);
        let mut stays = list.keys.clone();
        random.shuffle(&mut stays);
        // The only key of a list of one stays.
        let stay = (stays.len() - stays.len().div_ceil(CHURNED_ONE_IN)).max(1);
        let churned = stays.split_off(stay);

        let draw = |_| {
            if random.usize(..LISTED_ONE_IN) > 0 {
                return SignUp { domain: unlisted(list, &mut random), kind: Kind::Unlisted };
            }
            if made > 0 && random.usize(..MADE_ONE_IN) == 0 {
                let key = MadeKey::new(random.u64(..made as u64));
                return SignUp { domain: key.as_str().into(), kind: Kind::Stays };
            }
            let drawn = random.usize(..list.keys.len());
            match stays.get(drawn) {
                Some(&domain) => SignUp { domain: domain.into(), kind: Kind::Stays },
                None => SignUp { domain: churned[drawn - stay].into(), kind: Kind::Comes },
            }
        };
        SignUps { all: (0..PREPARED).map(draw).collect(), churned }
    }
}

/// Makes up a domain that is neither on the list nor a made key: those end otherwise.
fn unlisted(list: &List, random: &mut Rng) -> Box<str> {
    const CONSONANTS: &[u8] = b"bcdfghjklmnprstvwxz";
    const VOWELS: &[u8] = b"aeiouy";
    const ENDINGS: [&str; 10] = ["com", "com", "com", "net", "org", "de", "fr", "co.uk", "com.br", "io"];
    loop {
        let mut domain = String::new();
        for _ in 0..random.usize(4..=6) {
            domain.push(CONSONANTS[random.usize(..CONSONANTS.len())].into());
            domain.push(VOWELS[random.usize(..VOWELS.len())].into());
        }
        domain.push('.');
        domain.push_str(ENDINGS[random.usize(..ENDINGS.len())]);
        if !list.exact.contains(domain.as_str()) {
            return domain.into();
        }
    }
}

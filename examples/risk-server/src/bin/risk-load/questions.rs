//! Look-ups, written down before the clock runs.

use crate::http;

/// Requests, and what the server is to say.
pub(crate) struct Questions {
    all: Vec<Question>,
    keys_each: usize,
}

struct Question {
    request: Box<[u8]>,
    /// The body that is right, if that is known.
    answer: Option<Box<[u8]>>,
}

/// Keys to be asked for, and whether each is listed if that is known.
pub(crate) type Asked<'k> = [(&'k str, Option<bool>)];

impl Questions {
    /// `GET /v1/check/{key}` for each key.
    pub(crate) fn single(keys: &Asked<'_>) -> Self {
        let question = |&(key, listed): &(&str, Option<bool>)| Question {
            request: http::check(key).into(),
            answer: listed
                .map(|listed| serde_json::json!({"key": key, "listed": listed}).to_string().into_bytes().into()),
        };
        Questions { all: keys.iter().map(question).collect(), keys_each: 1 }
    }

    /// `POST /v1/check` for so many keys each. Keys that do not fill a batch are left out.
    pub(crate) fn batches(keys: &Asked<'_>, size: usize) -> Self {
        let question = |keys: &Asked<'_>| {
            let (keys, listed): (Vec<&str>, Vec<Option<bool>>) = keys.iter().copied().unzip();
            let listed: Option<Vec<bool>> = listed.into_iter().collect();
            Question {
                request: http::check_batch(&keys).into(),
                answer: listed.map(|listed| serde_json::json!({"listed": listed}).to_string().into_bytes().into()),
            }
        };
        Questions { all: keys.chunks_exact(size).map(question).collect(), keys_each: size }
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    pub(crate) fn keys_each(&self) -> usize {
        self.keys_each
    }

    pub(crate) fn request(&self, index: usize) -> &[u8] {
        &self.all[index].request
    }

    /// Judges the form of an answer, and what it says if `exact`; says how many keys it calls listed.
    pub(crate) fn judge(&self, index: usize, status: u16, body: &[u8], exact: bool) -> Result<usize, String> {
        let question = &self.all[index];
        let told = |what: &str| {
            let (request, body) = (String::from_utf8_lossy(&question.request), String::from_utf8_lossy(body));
            let request: String = request.chars().take(300).collect();
            let body: String = body.chars().take(300).collect();
            format!("{what}: {request:?} was answered {status}: {body:?}")
        };
        if status != 200 {
            return Err(told("a refusal"));
        }
        if exact && question.answer.as_ref().is_some_and(|right| **right != *body) {
            return Err(told("a wrong answer"));
        }
        listed(body, self.keys_each).ok_or_else(|| told("no answer for each key"))
    }
}

/// How many keys an answer calls listed, if it answers for so many. The answer is read as the server writes it, which
/// costs less than to read any JSON.
fn listed(body: &[u8], keys: usize) -> Option<usize> {
    const LISTED: &[u8] = b"\"listed\":";
    let at = body.windows(LISTED.len()).rposition(|bytes| bytes == LISTED)?;
    let answers = body[at + LISTED.len()..].strip_suffix(b"}")?;
    let answers = answers.strip_prefix(b"[").and_then(|answers| answers.strip_suffix(b"]")).unwrap_or(answers);
    let mut counts = (0, 0);
    for answer in answers.split(|&byte| byte == b',') {
        match answer {
            b"true" => counts.0 += 1,
            b"false" => counts.1 += 1,
            _ => return None,
        }
    }
    (counts.0 + counts.1 == keys).then_some(counts.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: &Asked<'_> = &[("a", Some(true)), ("b\"", Some(false)), ("c", Some(true))];

    #[test]
    fn a_right_answer_counts_and_a_wrong_one_is_told() {
        let questions = Questions::single(KEYS);
        assert_eq!((questions.len(), questions.keys_each()), (3, 1));
        assert_eq!(questions.judge(0, 200, br#"{"key":"a","listed":true}"#, true), Ok(1));
        assert_eq!(questions.judge(1, 200, br#"{"key":"b\"","listed":false}"#, true), Ok(0));
        assert!(questions.judge(0, 200, br#"{"key":"a","listed":false}"#, true).unwrap_err().contains("wrong answer"));
        assert!(questions.judge(0, 200, br#"{"key":"c","listed":true}"#, true).unwrap_err().contains("wrong answer"));
        assert_eq!(questions.judge(0, 200, br#"{"key":"a","listed":false}"#, false), Ok(0));
        assert!(questions.judge(0, 503, br#"{"key":"a","listed":true}"#, true).unwrap_err().contains("503"));
    }

    #[test]
    fn batches_are_answered_in_their_order() {
        let questions = Questions::batches(KEYS, 2);
        assert_eq!((questions.len(), questions.keys_each()), (1, 2));
        assert_eq!(questions.judge(0, 200, br#"{"listed":[true,false]}"#, true), Ok(1));
        assert!(questions.judge(0, 200, br#"{"listed":[false,true]}"#, true).is_err());
    }

    #[test]
    fn where_the_right_answer_is_not_known_its_form_is() {
        let keys: &Asked<'_> = &[("a", None), ("b", None)];
        let questions = Questions::batches(keys, 2);
        assert_eq!(questions.judge(0, 200, br#"{"listed":[true,true]}"#, true), Ok(2));
        for body in [r#"{"listed":[true]}"#, r#"{"listed":[true,maybe]}"#, r#"{"listed":[]}"#, "{}", ""] {
            assert!(questions.judge(0, 200, body.as_bytes(), true).is_err(), "{body}");
        }
        assert_eq!(Questions::single(keys).judge(1, 200, br#"{"key":"b","listed":true}"#, true), Ok(1));
    }
}

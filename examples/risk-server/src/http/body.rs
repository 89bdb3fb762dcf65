//! A body that is read as a whole, and work that blocks: each within its time.

use super::answer::Failure;
use axum::body::{Body, HttpBody};
use axum::http::StatusCode;
use futures_util::StreamExt;
use std::time::Duration;
use tokio::task::{AbortHandle, spawn_blocking};
use tokio::time::timeout;

/// Reads a body of at most `limit` bytes.
pub(crate) async fn read(body: Body, limit: usize, time: Duration) -> Result<Vec<u8>, Failure> {
    let too_long = || Failure::new(StatusCode::PAYLOAD_TOO_LARGE, format!("the body has more than {limit} bytes"));
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if announced > limit {
        return Err(too_long());
    }
    let read = async {
        let mut bytes = Vec::with_capacity(announced);
        let mut pieces = body.into_data_stream();
        while let Some(piece) = pieces.next().await {
            let piece = piece.map_err(|error| Failure::bad_request(format!("the body broke off: {error}")))?;
            if piece.len() > limit - bytes.len() {
                return Err(too_long());
            }
            bytes.extend_from_slice(&piece);
        }
        Ok(bytes)
    };
    timeout(time, read).await.map_err(|_| {
        let error = format!("the body took longer than {} s to arrive", time.as_secs_f64());
        Failure::new(StatusCode::REQUEST_TIMEOUT, error)
    })?
}

/// Does work that may block, on a thread where that keeps no other request waiting.
pub(crate) async fn blocking<T: Send + 'static>(
    time: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Failure> {
    let work = spawn_blocking(work);
    let _not_later = NotLater(work.abort_handle());
    in_time("the look-up", time, work)
        .await?
        .map_err(|error| Failure::internal(format!("a look-up did not end: {error}")))
}

/// Work that nobody waits for any more is not begun, so that none piles up behind a disk that stalls.
struct NotLater(AbortHandle);

impl Drop for NotLater {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Waits for what this server does itself.
pub(crate) async fn in_time<T>(what: &str, time: Duration, work: impl Future<Output = T>) -> Result<T, Failure> {
    timeout(time, work)
        .await
        .map_err(|_| Failure::unavailable(format!("{what} took longer than {} s", time.as_secs_f64())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_takes_too_long_is_not_waited_for() {
        let never = std::future::pending::<()>();
        let failure = in_time("the look-up", Duration::from_millis(10), never).await.unwrap_err();
        assert_eq!(failure.status, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(failure.error, "the look-up took longer than 0.01 s");
    }

    #[test]
    fn work_that_nobody_waits_for_is_not_begun() {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_time().max_blocking_threads(1).build().unwrap();
        let (go, wait) = std::sync::mpsc::channel::<()>();
        let (say, said) = std::sync::mpsc::channel();
        runtime.block_on(async {
            // The only thread is taken.
            let taken = spawn_blocking(move || wait.recv());
            let late = blocking(Duration::from_millis(10), move || say.send(())).await;
            assert_eq!(late.unwrap_err().status, StatusCode::SERVICE_UNAVAILABLE);
            go.send(()).unwrap();
            taken.await.unwrap().unwrap();
            spawn_blocking(|| ()).await.unwrap();
        });
        assert!(said.recv().is_err(), "it was begun");
    }

    #[tokio::test]
    async fn work_that_panics_is_an_error_of_the_server() {
        let failure = blocking::<()>(Duration::from_secs(60), || panic!("as asked for")).await.unwrap_err();
        assert_eq!(failure.status, StatusCode::INTERNAL_SERVER_ERROR);
    }
}

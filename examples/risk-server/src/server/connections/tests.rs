use super::*;
use crate::http::{Access, App, Hosts, Limits};
use crate::list::{List, Options};
use std::net::SocketAddr;
use std::sync::Arc;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// Far more than anything here takes.
const LONG: Duration = Duration::from_secs(3600);

/// Far more than what should come at once, and less than the 30 s after which hyper closes silent connections by itself.
const A_WHILE: Duration = Duration::from_secs(20);

/// A server with an empty list of its own.
struct Running {
    address: SocketAddr,
    stop: oneshot::Sender<Duration>,
    /// How many connections were cut off.
    ended: JoinHandle<usize>,
    _folder: TempDir,
}

async fn start(most: usize, idle: Duration) -> Running {
    start_with(most, idle, idle).await
}

async fn start_with(most: usize, first_byte: Duration, idle: Duration) -> Running {
    let limits = Limits { body_bytes: 1000, batch_keys: 10, requests: 10, request: LONG, idle: LONG, decoded_bytes: 0 };
    let app = App::new(limits, Access { token: None, hosts: Hosts::Any });
    let folder = tempfile::tempdir().unwrap();
    let options = Options::of_test(folder.path(), 1_000);
    let list = tokio::task::spawn_blocking(|| List::open(options, |_| {})).await.unwrap().unwrap().list;
    app.serve(list.clone(), Arc::new(list));
    let mut connections = Connections::new(Service::new(app), most, first_byte, idle);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, mut stopped) = oneshot::channel();
    let ended = tokio::spawn(async move {
        let time = tokio::select! {
            never = connections.accept(&listener) => match never {},
            time = &mut stopped => time.unwrap(),
        };
        drop(listener);
        connections.finish(time).await
    });
    Running { address, stop, ended, _folder: folder }
}

impl Running {
    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }
}

const HEALTHZ: &[u8] = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";

/// Reads one answer of `/healthz`.
async fn answered(stream: &mut TcpStream) -> String {
    let mut answer = String::new();
    while !answer.ends_with("\r\n\r\nok") {
        let mut bytes = [0; 1000];
        let length = stream.read(&mut bytes).await.unwrap();
        assert!(length > 0, "closed after {answer:?}");
        answer.push_str(std::str::from_utf8(&bytes[..length]).unwrap());
    }
    answer
}

/// Reads up to the end of the connection.
async fn rest(stream: &mut TcpStream) -> String {
    let mut rest = String::new();
    stream.read_to_string(&mut rest).await.unwrap();
    rest
}

#[tokio::test]
async fn a_connection_is_answered_again_and_again() {
    let server = start(1, LONG).await;
    let mut stream = server.connect().await;
    for _ in 0..3 {
        stream.write_all(HEALTHZ).await.unwrap();
        assert!(answered(&mut stream).await.starts_with("HTTP/1.1 200 OK\r\n"));
    }
}

#[tokio::test]
async fn beyond_the_limit_a_connection_waits_for_another_one_to_end() {
    let server = start(1, LONG).await;
    let mut first = server.connect().await;
    first.write_all(HEALTHZ).await.unwrap();
    answered(&mut first).await;

    let mut second = server.connect().await;
    second.write_all(HEALTHZ).await.unwrap();
    assert!(timeout(Duration::from_millis(50), answered(&mut second)).await.is_err());
    drop(first);
    answered(&mut second).await;
}

#[tokio::test]
async fn a_connection_that_keeps_silent_is_closed() {
    let server = start(10, Duration::from_millis(20)).await;
    for begun in [&b""[..], &HEALTHZ[..10]] {
        let mut stream = server.connect().await;
        stream.write_all(begun).await.unwrap();
        closed_soon(&mut stream).await;
    }
    let mut answered_before = server.connect().await;
    answered_before.write_all(HEALTHZ).await.unwrap();
    answered(&mut answered_before).await;
    closed_soon(&mut answered_before).await;
}

#[tokio::test]
async fn a_connection_that_sends_nothing_is_closed_sooner_than_one_that_has() {
    let server = start_with(10, Duration::from_secs(1), LONG).await;
    let mut begun = server.connect().await;
    begun.write_all(&HEALTHZ[..1]).await.unwrap();
    closed_soon(&mut server.connect().await).await;
    closed_soon(&mut server.connect().await).await;
    begun.write_all(&HEALTHZ[1..]).await.unwrap();
    answered(&mut begun).await;
}

async fn closed_soon(stream: &mut TcpStream) {
    timeout(A_WHILE, rest(stream)).await.expect("a silent connection is still open");
}

#[tokio::test]
async fn a_head_without_end_does_not_fill_the_memory() {
    let server = start(10, LONG).await;
    let mut stream = server.connect().await;
    let endless = [b"GET /healthz HTTP/1.1\r\nx: ", vec![b'x'; 4 * BUFFER].as_slice()].concat();
    let _ = stream.write_all(&endless).await; // it may be closed before all is written
    let mut answer = Vec::new();
    let _ = timeout(A_WHILE, stream.read_to_end(&mut answer)).await.expect("all of the head is waited for");
    assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 431 "), "{}", String::from_utf8_lossy(&answer));
}

/// A request whose body is waited for.
async fn busy(server: &Running) -> TcpStream {
    let mut stream = server.connect().await;
    let head = b"POST /v1/check HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\nexpect: 100-continue\r\n\r\n";
    stream.write_all(head).await.unwrap();
    let mut go_on = [0; 25];
    stream.read_exact(&mut go_on).await.unwrap();
    assert_eq!(&go_on, b"HTTP/1.1 100 Continue\r\n\r\n");
    stream
}

#[tokio::test]
async fn at_the_end_idle_connections_are_closed_and_requests_are_answered() {
    let server = start(10, LONG).await;
    let mut idle = server.connect().await;
    idle.write_all(HEALTHZ).await.unwrap();
    answered(&mut idle).await;
    let mut busy = busy(&server).await;

    server.stop.send(LONG).unwrap();
    assert_eq!(rest(&mut idle).await, "");
    assert!(TcpStream::connect(server.address).await.is_err());
    sleep(Duration::from_millis(50)).await; // so that it is cut off if it was not waited for
    busy.write_all(b"[]").await.unwrap();
    assert!(rest(&mut busy).await.ends_with(r#"{"listed":[]}"#));
    assert_eq!(server.ended.await.unwrap(), 0);
}

#[tokio::test]
async fn at_the_end_a_request_that_takes_too_long_is_cut_off() {
    let server = start(10, LONG).await;
    let mut busy = busy(&server).await;
    server.stop.send(Duration::from_millis(20)).unwrap();
    assert_eq!(rest(&mut busy).await, "");
    assert_eq!(server.ended.await.unwrap(), 1);
}

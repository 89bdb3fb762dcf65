use super::*;

fn parse(arguments: &[&str]) -> Result<Config, String> {
    let arguments = ["risk-server"].iter().chain(arguments);
    Config::try_parse_from(arguments).map_err(|error| error.to_string())
}

fn refused(arguments: &[&str]) -> String {
    parse(arguments).unwrap_err().lines().next().unwrap().to_owned()
}

#[test]
fn without_options_it_listens_on_this_machine_only() {
    let config = parse(&[]).unwrap();
    assert_eq!(config.listen.to_string(), "127.0.0.1:8080");
    assert_eq!(config.snapshot_minutes, Duration::from_secs(300));
    assert_eq!((config.limits().requests, config.limits().request), (1024, Duration::from_secs(10)));
    assert_eq!((config.list().capacity, config.list().cache_bytes), (1_000_000, 64 << 20));
    let access = config.access_with(None).unwrap();
    assert!(access.token.is_none() && matches!(access.hosts, Hosts::Only(names) if names.is_empty()));
}

#[test]
fn what_cannot_be_is_refused_in_one_line_that_says_what_can() {
    for (option, value, expected) in [
        ("--listen", "localhost", "such as 127.0.0.1:8080, localhost:8080 or :8080"),
        ("--listen", "127.0.0.1:x", "an address and a port are needed"),
        ("--admin", "9090", "an address and a port are needed"),
        ("--allowed-host", "", "list.example.com"),
        ("--allowed-host", "https://list.example.com", "without scheme"),
        ("--allowed-host", "list.example.com:443", "without scheme and port"),
        ("--allowed-host", "me@list.example.com", "as it stands in URLs"),
        ("--capacity", "0", "a whole number from 1 on"),
        ("--capacity", "1.5", "a whole number from 1 on"),
        ("--false-positive-rate", "0", "above 0 and below 1"),
        ("--false-positive-rate", "1", "above 0 and below 1"),
        ("--false-positive-rate", "-0.1", "above 0 and below 1"),
        ("--false-positive-rate", "NaN", "above 0 and below 1"),
        ("--snapshot-minutes", "-1", "from 0 to 10080"),
        ("--snapshot-minutes", "inf", "from 0 to 10080"),
        ("--request-seconds", "0", "above 0"),
        ("--request-seconds", "604801", "from 0 to 604800"),
        ("--idle-seconds", "x", "from 0 to 604800"),
        ("--max-requests", "0", "a whole number from 1 on"),
        ("--cache-mib", "0", "a whole number from 1 to"),
        ("--cache-mib", "99999999999999", "a whole number from 1 to"),
        ("--log-format", "xml", "invalid value 'xml'"),
    ] {
        let error = refused(&[option, value]);
        assert!(error.contains(expected) && error.contains(option), "{option} {value}: {error}");
    }
}

#[test]
fn parts_of_a_minute_and_a_second_are_possible() {
    let config = parse(&["--snapshot-minutes", "0.05", "--shutdown-seconds", "0", "--idle-seconds", "0.5"]).unwrap();
    assert_eq!(config.snapshot_minutes, Duration::from_secs(3));
    assert_eq!(config.shutdown_seconds, Duration::ZERO);
    assert_eq!(config.limits().idle, Duration::from_millis(500));
}

#[test]
fn an_address_may_be_a_name_or_left_out() {
    assert!(parse(&["--listen", "localhost:8080"]).unwrap().listen.ip().is_loopback());
    assert_eq!(parse(&["--listen", ":8080"]).unwrap().listen.to_string(), "0.0.0.0:8080");
    assert_eq!(parse(&["--admin", "[::1]:9090"]).unwrap().admin.unwrap().to_string(), "[::1]:9090");
}

#[test]
fn hosts_that_are_named_are_the_only_ones_on_any_address() {
    for listen in ["127.0.0.1:80", "0.0.0.0:80"] {
        let arguments = ["--listen", listen, "--allowed-host", "a.example,b.example", "--allowed-host", "[::2]"];
        let access = parse(&arguments).unwrap().access_with(Some("secret".to_owned())).unwrap();
        let Hosts::Only(names) = access.hosts else { panic!("any host is answered") };
        assert_eq!(*names, ["a.example", "b.example", "[::2]"]);
    }
}

#[test]
fn an_address_that_others_can_reach_needs_a_token() {
    for listen in ["0.0.0.0:80", "[::]:80", "192.168.1.1:0"] {
        let config = parse(&["--listen", listen]).unwrap();
        let error = config.access_with(None).unwrap_err().to_string();
        assert!(error.starts_with(listen) && error.contains("--token-file or RISK_SERVER_TOKEN"), "{error}");
        let access = config.access_with(Some("secret".to_owned())).unwrap();
        assert!(access.token.is_some() && matches!(access.hosts, Hosts::Any));
    }
    for listen in ["127.0.0.1:80", "127.9.9.9:80", "[::1]:80", "[::ffff:127.0.0.1]:80"] {
        let access = parse(&["--listen", listen]).unwrap().access_with(None).unwrap();
        assert!(matches!(access.hosts, Hosts::Only(_)), "{listen}");
    }
}

#[test]
fn a_token_comes_from_a_file_or_from_the_environment() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("token");
    let with_file = parse(&["--token-file", path.to_str().unwrap()]).unwrap();
    let cannot = with_file.access_with(None).unwrap_err().to_string();
    assert!(cannot.contains("token cannot be read"), "{cannot}");

    std::fs::write(&path, "secret\n").unwrap();
    assert!(with_file.access_with(None).unwrap().token.is_some());
    let two = with_file.access_with(Some("other".to_owned())).unwrap_err();
    assert!(matches!(two, ConfigError::TwoTokens), "{two}");

    std::fs::write(&path, "\n").unwrap();
    assert!(matches!(with_file.access_with(None), Err(ConfigError::Token(TokenError::Empty))));
    let empty = parse(&[]).unwrap().access_with(Some(String::new()));
    assert!(matches!(empty, Err(ConfigError::Token(TokenError::Empty))));
}

#[test]
fn the_help_names_a_variable_for_every_option_and_no_secret() {
    use clap::CommandFactory;
    let mut command = Config::command();
    for argument in
        command.get_arguments().filter(|argument| !["help", "version"].contains(&argument.get_id().as_str()))
    {
        let expected = format!("RISK_SERVER_{}", argument.get_id().as_str().to_uppercase());
        assert_eq!(argument.get_env().and_then(|name| name.to_str()), Some(expected.as_str()));
    }
    assert!(command.render_long_help().to_string().contains("RISK_SERVER_TOKEN may hold the token"));
}

//! Round trips with planted secrets and hostile names.

use super::*;

const DOCUMENT: &str = r#"{"rabbit_version":"3.10.8",
 "users":[{"name":"shop","password_hash":"PLANTED-hash1+/=","hashing_algorithm":"rabbit_password_hashing_sha256","tags":[],"limits":{}},
  {"password":"PLANTED-clear","name":"{{seal:0:0}}","tags":"" , "limits":[]},
  {"name":"dup","password_hash":"PLANTED-a","password_hash":"PLANTED-b"},
  {"name":"shadow","password_hash":"","x":1.0e3},{"name":"esc","p\u0061ssword_hash":"PLANTED-c\"\u00e9"}],
 "vhosts":[{"name":"/"}],
 "parameters":[
  {"value":{"src-uri":"amqp://u:PLANTED-src@h1","dest-uri":["amqp://","amqps://v:PLANTED-p@ss/x@h2:5671/%2f?password=PLANTED-key&verify=x"],"src-queue":"q"},"vhost":"/","component":"shovel","name":"s"},
  {"vhost":"/","component":"federation-upstream","name":"f","value":{"uri":"amqp:\/\/w:PLANTED-esc@h3","prefetch-count":7,"deep":{"er":["amqp://PLANTED-token@h4"]}}},
  {"component":"operator_policy","value":{"pattern":"^u:p@h","definition":{"x":"amqp://a:pattern@b"}},"name":"o"},
  {"component":"vhost-limits","value":{"max-connections":1},"name":"limits"}],
 "queues":[{"name":"{{seal:1:0}}","vhost":"/","arguments":{"a":"amqp://not:asecretplace@h"}},{"name":"\u007b{seal:2:0}}"}],
 "global_parameters":[{"name":"cluster_name","value":"blue"},{"name":"x","value":"http://u:PLANTED-global@h"}]}
"#;

fn sealed() -> Sealed {
    seal(DOCUMENT.as_bytes()).unwrap()
}

#[test]
fn nothing_planted_is_left() {
    let text = String::from_utf8(sealed().bytes).unwrap();
    assert!(!text.contains("PLANTED"), "{text}");
    assert_eq!(sealed().seals.len(), 11);
    assert!(!format!("{:?}", sealed()).contains("PLANTED"));
    assert!(format!("{:?}", sealed().seals).contains("11"));
}

#[test]
fn the_rest_is_untouched_and_hosts_stay_readable() {
    let text = String::from_utf8(sealed().bytes).unwrap();
    for kept in [
        r#""src-uri":"amqp://u:{{seal:2:"#,
        "@h2:5671/%2f?password={{seal:2:",
        r#"{"name":"shadow","password_hash":"","x":1.0e3}"#,
        r#"{"password":"{{seal:2:1}}","name":"{{seal:0:0}}","tags":"" , "limits":[]}"#,
        r#""queues":[{"name":"{{seal:1:0}}","vhost":"/","arguments":{"a":"amqp://not:asecretplace@h"}}"#,
        r#"{"name":"cluster_name","value":"blue"}"#,
        r#""value":{"pattern":"^u:p@h","definition":{"x":"amqp://a:pattern@b"}}"#,
    ] {
        assert!(text.contains(kept), "{kept} in {text}");
    }
}

#[test]
fn the_round_trip_is_byte_identical() {
    let Sealed { bytes, seals } = sealed();
    assert_eq!(String::from_utf8(unseal(&bytes, &seals).unwrap()).unwrap(), DOCUMENT);
}

#[test]
fn a_reserialized_and_shortened_document_unseals() {
    let Sealed { bytes, seals } = sealed();
    let mut value: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
    value["users"].as_array_mut().unwrap().remove(1);
    let text = String::from_utf8(unseal(&serde_json::to_vec(&value).unwrap(), &seals).unwrap()).unwrap();
    let back: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(back["users"][0]["password_hash"], "PLANTED-hash1+/=");
    assert_eq!(back["users"][3]["password_hash"], "PLANTED-c\"\u{e9}");
    assert_eq!(back["parameters"][1]["value"]["uri"], "amqp://w:PLANTED-esc@h3");
    assert_eq!(back["queues"][0]["name"], "{{seal:1:0}}", "a name like a seal is a name");
    assert_eq!(back["queues"][1]["name"], "{{seal:2:0}}", "even if it got one by unescaping");
}

#[test]
fn an_unknown_seal_is_an_error() {
    let Sealed { seals, .. } = sealed();
    for number in ["99", "x", ""] {
        let text = format!(r#"{{"users":[{{"password_hash":"{{{{seal:2:{number}}}}}"}}]}}"#);
        assert_eq!(unseal(text.as_bytes(), &seals).unwrap_err().kind(), crate::Kind::Malformed);
    }
}

#[test]
fn odd_documents_neither_panic_nor_leak() {
    for text in ["", "[]", "{", "null", r#"{"users":["hunter2"#, "{\"users\":\"\u{e9}"] {
        let error = seal(text.as_bytes()).unwrap_err();
        assert!(!error.report().contains("hunter2"), "{}", error.report());
    }
    for text in [
        r#"{"users":7}"#,
        r#"{"parameters":[{"component":"c","value":"ops@example.org"}]}"#,
        r#"{"users":[1,"x"],"parameters":{"value":"a:b@c"}}"#,
        "{}",
    ] {
        let Sealed { bytes, seals } = seal(text.as_bytes()).unwrap();
        assert_eq!(unseal(&bytes, &seals).unwrap(), text.as_bytes());
    }
    assert!(seal(b"{\"a\":\"\xff\"}").is_err());
}

#[test]
fn secrets_for_masking_are_unescaped() {
    let secrets = secrets_in(br#"{"users":[{"password_hash":"a\/b"}]}"#);
    assert_eq!(secrets.iter().map(Secret::expose).collect::<Vec<_>>(), ["a/b"]);
}

/// A fixed sequence of odd strings, no chance involved.
fn odd_strings() -> impl Iterator<Item = String> {
    const PIECES: [&str; 16] = [
        "amqp://",
        "u",
        ":",
        "@",
        "/",
        "\\",
        "\"",
        "{{seal:0:",
        "}}",
        "password=",
        "\u{e9}",
        "%40",
        "?",
        "&",
        "\u{7f}\n",
        "1",
    ];
    let mut state = 1_u64;
    let mut next = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap()
    };
    std::iter::repeat_with(move || (0..next() % 9).map(|_| PIECES[next() % PIECES.len()]).collect())
}

#[test]
fn odd_strings_in_every_place_round_trip() {
    let mut odd = odd_strings();
    let mut take = || serde_json::to_string(&odd.next().unwrap()).unwrap();
    for _ in 0..5_000 {
        let document = format!(
            r#"{{"users":[{{"name":{},"password_hash":{},{}:{}}}],"parameters":[{{"component":{},"value":{{"uri":[{},{}],{}:{}}}}}],"queues":[{{"name":{}}}]}}"#,
            take(),
            take(),
            take(),
            take(),
            take(),
            take(),
            take(),
            take(),
            take(),
            take()
        );
        let Sealed { bytes, seals } = seal(document.as_bytes()).unwrap();
        assert_eq!(String::from_utf8(unseal(&bytes, &seals).unwrap()).unwrap(), document);
        // What lies between may write the document anew.
        let value: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        let anew = unseal(&serde_json::to_vec(&value).unwrap(), &seals).unwrap();
        let original: serde_json::Value = serde_json::from_str(&document).unwrap();
        assert_eq!(serde_json::from_slice::<serde_json::Value>(&anew).unwrap(), original);
    }
}

#[test]
fn a_password_of_any_kind_is_sealed() {
    for password in odd_strings().take(5_000).map(|odd| format!("PLANTED{odd}PLANTED")) {
        let token = password.replace(':', "");
        let document = serde_json::json!({"parameters": [{"component": "shovel", "value": {
            "src-uri": format!("amqp://user:{password}@host:5672/%2f"),
            "dest-uri": [format!("amqps://{token}@host")]
        }}], "users": [{"password_hash": password}]});
        let Sealed { bytes, seals } = seal(&serde_json::to_vec(&document).unwrap()).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        assert!(!text.contains("PLANTED"), "{text}");
        assert_eq!(seals.len(), 3);
    }
}

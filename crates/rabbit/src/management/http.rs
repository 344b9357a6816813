//! The HTTP client itself: one shared connection pool, explicit timeouts, nothing followed or proxied.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Certificate, Method, StatusCode, Url};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::path::path;
use super::reason::reason;
use crate::error::{Cause, Error, Result};
use crate::seal;
use crate::secret::{Credentials, Secret};
use crate::timeouts::Timeouts;

/// Client of one broker's management API. Cloning is cheap and shares the connections.
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

struct Inner {
    http: reqwest::Client,
    base: String,
    creds: Credentials,
    timeouts: Timeouts,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("base", &self.inner.base)
            .field("user", &self.inner.creds.username)
            .finish()
    }
}

/// Parses an answer. By way of a [`serde_json::Value`], since brokers repeat keys: RabbitMQ 4.0.5 sends
/// `online` twice for a quorum queue, once as the queue has it and once as the statistics have it, which a
/// struct would refuse. The last one counts.
pub(super) fn parse<T: DeserializeOwned>(body: &[u8]) -> std::result::Result<T, Cause> {
    let malformed = |error: serde_json::Error| Cause::Malformed(error.to_string());
    let value: serde_json::Value = serde_json::from_slice(body).map_err(malformed)?;
    serde_json::from_value(value).map_err(malformed)
}

impl Client {
    /// Builds a client for `http://host:15672` (a path prefix is kept). No I/O.
    ///
    /// For `https` give [`Client::with_ca`]. Proxies of the environment are ignored and redirects not
    /// followed: both would hand the password to somebody else.
    pub fn new(base_url: &str, creds: Credentials, timeouts: Timeouts) -> Result<Self> {
        Self::build(base_url, None, creds, timeouts)
    }

    /// As [`Client::new`], trusting exactly the certificates of a PEM bundle for `https`.
    pub fn with_ca(base_url: &str, ca_pem: &[u8], creds: Credentials, timeouts: Timeouts) -> Result<Self> {
        Self::build(base_url, Some(ca_pem), creds, timeouts)
    }

    fn build(base_url: &str, ca: Option<&[u8]>, creds: Credentials, timeouts: Timeouts) -> Result<Self> {
        let failed = |cause| Error::BuildClient { url: super::reason::mask(base_url, &[]), cause };
        let base = base_of(base_url).map_err(failed)?;
        let http = http_client(ca, timeouts).map_err(failed)?;
        Ok(Self { inner: Arc::new(Inner { http, base, creds, timeouts }) })
    }

    /// The base URL, without a trailing slash.
    pub fn base_url(&self) -> &str {
        &self.inner.base
    }

    /// The user this client logs in as.
    pub fn username(&self) -> &str {
        &self.inner.creds.username
    }

    /// Reads a small document.
    pub(super) async fn get<T: DeserializeOwned>(&self, object: &str, segments: &[&str]) -> Result<T> {
        self.get_query(object, segments, "", self.inner.timeouts.request).await
    }

    /// Reads a listing.
    pub(super) async fn list<T: DeserializeOwned>(&self, object: &str, segments: &[&str]) -> Result<T> {
        self.get_query(object, segments, "", self.inner.timeouts.bulk).await
    }

    /// Reads a listing with a query string (fixed text or numbers, never a name).
    pub(super) async fn list_query<T: DeserializeOwned>(
        &self,
        object: &str,
        segments: &[&str],
        query: &str,
    ) -> Result<T> {
        self.get_query(object, segments, query, self.inner.timeouts.bulk).await
    }

    async fn get_query<T: DeserializeOwned>(
        &self,
        object: &str,
        segments: &[&str],
        query: &str,
        timeout: Duration,
    ) -> Result<T> {
        let call = Call { query, ..Call::new(Method::GET, segments, timeout) };
        let read = async {
            let answer = self.send(call).await?.success()?;
            parse(&answer.body)
        };
        read.await.map_err(|cause| Error::Read { object: object.to_owned(), cause })
    }

    /// Changes one object; `body` is sent as JSON.
    pub(super) async fn change(
        &self,
        object: &str,
        method: Method,
        segments: &[&str],
        body: &impl Serialize,
    ) -> Result<()> {
        self.change_by(self.call(method, segments), object, body).await
    }

    /// As [`Client::change`], for what takes the whole cluster a while.
    pub(super) async fn change_slowly(
        &self,
        object: &str,
        method: Method,
        segments: &[&str],
        body: &impl Serialize,
    ) -> Result<()> {
        self.change_by(self.bulk_call(method, segments), object, body).await
    }

    async fn change_by(&self, call: Call<'_>, object: &str, body: &impl Serialize) -> Result<()> {
        let change = async {
            let body = serde_json::to_vec(body).map_err(|e| Cause::Malformed(e.to_string()))?;
            let secrets = secrets_of(&body);
            let call = Call { body: Some(body), ..call };
            let secrets: Vec<&str> = secrets.iter().map(Secret::expose).collect();
            self.send(call).await?.success_without(&secrets)
        };
        change.await.map(drop).map_err(|cause| Error::Change { object: object.to_owned(), cause })
    }

    /// Removes one object; one that is not there is removed already.
    pub(super) async fn remove(&self, object: &str, segments: &[&str], query: &str) -> Result<()> {
        self.remove_by(self.call(Method::DELETE, segments), object, query).await
    }

    /// As [`Client::remove`], for what takes the whole cluster a while.
    pub(super) async fn remove_slowly(&self, object: &str, segments: &[&str]) -> Result<()> {
        self.remove_by(self.bulk_call(Method::DELETE, segments), object, "").await
    }

    async fn remove_by(&self, call: Call<'_>, object: &str, query: &str) -> Result<()> {
        let call = Call { query, ..call };
        let remove = async {
            let answer = self.send(call).await?;
            if answer.status == StatusCode::NOT_FOUND { Ok(()) } else { answer.success().map(drop) }
        };
        remove.await.map_err(|cause| Error::Remove { object: object.to_owned(), cause })
    }

    /// Starts a call with the small timeout.
    pub(super) fn call<'a>(&self, method: Method, segments: &'a [&'a str]) -> Call<'a> {
        Call::new(method, segments, self.inner.timeouts.request)
    }

    /// Starts a call with the large timeout.
    pub(super) fn bulk_call<'a>(&self, method: Method, segments: &'a [&'a str]) -> Call<'a> {
        Call::new(method, segments, self.inner.timeouts.bulk)
    }

    /// Sends one request and reads the whole answer within its timeout. Cut: a change may have been made.
    pub(super) async fn send(&self, call: Call<'_>) -> Result<Answer, Cause> {
        let Call { method, segments, query, body, headers, timeout } = call;
        let path = path(segments)?;
        let separator = if query.is_empty() { "" } else { "?" };
        let url = Url::parse(&format!("{}{path}{separator}{query}", self.inner.base))
            .map_err(|e| Cause::Malformed(e.to_string()))?;
        tracing::trace!(%method, path, query, "management call");
        let creds = &self.inner.creds;
        let mut request = self
            .inner
            .http
            .request(method, url)
            .timeout(timeout)
            .headers(headers)
            .basic_auth(&creds.username, Some(creds.password.expose()));
        if let Some(body) = body {
            request = request.header(CONTENT_TYPE, "application/json").body(body);
        }
        let answer = request.send().await.map_err(|e| unreachable(e, timeout))?;
        let status = answer.status();
        let body = answer.bytes().await.map_err(|e| unreachable(e, timeout))?;
        Ok(Answer { status, body: body.to_vec(), login: creds.password.clone() })
    }
}

/// One request.
pub(super) struct Call<'a> {
    method: Method,
    segments: &'a [&'a str],
    pub(super) query: &'a str,
    pub(super) body: Option<Vec<u8>>,
    pub(super) headers: HeaderMap,
    timeout: Duration,
}

impl<'a> Call<'a> {
    fn new(method: Method, segments: &'a [&'a str], timeout: Duration) -> Self {
        Self { method, segments, query: "", body: None, headers: HeaderMap::new(), timeout }
    }

    /// Adds the reason that the closed client will see; anything but visible ASCII becomes a space.
    pub(super) fn with_reason(mut self, reason: &str) -> Self {
        let line: String =
            reason.chars().map(|c| if c.is_ascii_graphic() { c } else { ' ' }).take(200).collect();
        if let Ok(value) = HeaderValue::from_str(&line) {
            self.headers.insert("x-reason", value);
        }
        self
    }
}

/// One answer, read to its end.
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) body: Vec<u8>,
    /// The password of the call: a proxy in between may quote it.
    login: Secret,
}

impl Answer {
    /// The answer if it is a success, else the broker's reason.
    pub(super) fn success(self) -> Result<Self, Cause> {
        self.success_without(&[])
    }

    /// As [`Answer::success`], with secrets that must not show up in the reason.
    pub(super) fn success_without(self, secrets: &[&str]) -> Result<Self, Cause> {
        if self.status.is_success() {
            return Ok(self);
        }
        let secrets: Vec<&str> = secrets.iter().copied().chain([self.login.expose()]).collect();
        Err(Cause::Status { status: self.status.as_u16(), reason: reason(&self.body, &secrets) })
    }
}

/// What a refusal of this body must not quote: it may be a parameter with URIs, or a user.
fn secrets_of(body: &[u8]) -> Vec<Secret> {
    let document = [br#"{"parameters":["#, body, br#"],"users":["#, body, b"]}"].concat();
    seal::secrets_in(&document)
}

/// Checks scheme and host, cuts the trailing slash.
fn base_of(base_url: &str) -> Result<String, Cause> {
    let url = Url::parse(base_url).map_err(|e| Cause::Malformed(e.to_string()))?;
    let plain = matches!(url.scheme(), "http" | "https")
        && url.username().is_empty()
        && url.password().is_none()
        && url.query().is_none()
        && url.fragment().is_none();
    if !plain {
        return Err(Cause::Malformed("need http(s)://host:port[/prefix] without user or query".into()));
    }
    Ok(url.as_str().trim_end_matches('/').to_owned())
}

/// Builds the shared client. Only given certificates are trusted, so that an image without a CA bundle works.
fn http_client(ca: Option<&[u8]>, timeouts: Timeouts) -> Result<reqwest::Client, Cause> {
    let malformed = |e: reqwest::Error| Cause::Malformed(chain(&e));
    let certificates = match ca {
        Some(pem) => Certificate::from_pem_bundle(pem).map_err(malformed)?,
        None => Vec::new(),
    };
    reqwest::Client::builder()
        .tls_certs_only(certificates)
        .connect_timeout(timeouts.connect)
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .pool_idle_timeout(Duration::from_secs(30))
        .build()
        .map_err(malformed)
}

/// A client without certificates, for plain HTTP.
pub(crate) fn plain_http(timeouts: Timeouts) -> Result<reqwest::Client, Cause> {
    http_client(None, timeouts)
}

/// Turns a transport error into a cause, without its URL.
pub(crate) fn unreachable(error: reqwest::Error, timeout: Duration) -> Cause {
    if error.is_timeout() && !error.is_connect() {
        return Cause::Timeout(timeout);
    }
    Cause::Unreachable(chain(&error.without_url()))
}

/// The innermost message says what really happened.
fn chain(error: &dyn std::error::Error) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(url: &str) -> Result<Client> {
        Client::new(url, Credentials::new("operator", "hunter2"), Timeouts::default())
    }

    #[test]
    fn debug_shows_no_password() {
        let client = client("http://127.0.0.1:15672/").unwrap();
        assert_eq!(format!("{client:?}"), r#"Client { base: "http://127.0.0.1:15672", user: "operator" }"#);
    }

    #[test]
    fn base_urls_with_credentials_are_refused_without_showing_them() {
        let error = client("http://u:hunter2@h:1/").unwrap_err();
        assert!(!error.report().contains("hunter2"), "{}", error.report());
        assert!(client("ftp://h").is_err());
        assert!(client("http://h/prefix/").unwrap().base_url().ends_with("/prefix"));
    }

    #[tokio::test]
    async fn a_closed_port_is_unreachable() {
        let client = client("http://127.0.0.1:1").unwrap();
        let error = client.whoami().await.unwrap_err();
        assert_eq!(error.kind(), crate::Kind::Unreachable);
        assert!(!error.report().contains("127.0.0.1:1/"), "{}", error.report());
    }

    #[tokio::test]
    async fn a_dot_name_is_refused_before_any_call() {
        let client = client("http://127.0.0.1:1").unwrap();
        let error = client.delete_vhost("..").await.unwrap_err();
        assert_eq!(error.kind(), crate::Kind::Refused);
    }
}

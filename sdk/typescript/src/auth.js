// Tokens for a server under --auth jwt. A token is a string, or a function that returns the current one and may have a
// method forget(), which Http calls after the server refused the token.
import { Http } from './http.js';

/** The option `token`: fetches a token, keeps it, renews it before it expires. */
export function credentials(url, clientId, secret, { path = '/api/oauth/token' } = {}) {
  const http = new Http(url);
  const basic = Buffer.from(`${encodeURIComponent(clientId)}:${encodeURIComponent(secret)}`).toString('base64');
  const headers = { Authorization: `Basic ${basic}`, 'Content-Type': 'application/x-www-form-urlencoded' };
  let held; // the promise of a token, so that callers at the same time share one request
  const fetchOne = async () => {
    const asked = performance.now();
    const answer = await http.call('POST', path, 'grant_type=client_credentials', { headers });
    // The token is renewed when a tenth of its life is left. A life that the server does not name
    // is taken as 60 s.
    return { token: answer.access_token, until: asked + 900 * (answer.expires_in ?? 60) };
  };
  const source = async () => {
    const mine = (held ??= fetchOne());
    try {
      const { token, until } = await mine;
      if (performance.now() < until) return token;
    } catch (err) {
      if (held === mine) held = undefined;
      throw err;
    }
    if (held === mine) held = undefined;
    return source();
  };
  source.forget = () => {
    held = undefined;
  };
  return source;
}

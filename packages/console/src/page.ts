import { createHash } from 'node:crypto'
import type { Reply } from './exchange.js'

const STYLE = 'body{font:16px/1.5 system-ui,sans-serif;max-width:40em;margin:4em auto;padding:0 1em}'

/**
 * Exchanges the secret behind `#` for a session, which stays in this tab, and shows where the API is. Text that comes from the
 * server is never markup.
 */
const SCRIPT = `
const base = location.pathname.replace(/\\/*$/, '/')
const say = (text) => { document.querySelector('p').textContent = text }
const secret = location.hash.slice(1)
history.replaceState(null, '', location.pathname)
const headers = { 'Content-Type': 'application/json', 'sluice-console': '1' }
async function start() {
  if (secret) {
    const response = await fetch(base + 'api/session', { method: 'POST', headers, body: JSON.stringify({ secret }) })
    const answer = await response.json()
    if (!response.ok) return say(answer.detail)
    sessionStorage.setItem('sluice-session', answer.session)
  }
  const session = sessionStorage.getItem('sluice-session')
  const response = await fetch(base + 'api/about', { headers: session ? { 'sluice-session': session } : {} })
  const answer = await response.json()
  if (!response.ok) return say(answer.detail)
  say('You are ' + answer.operator.name + ', and may ' + answer.operator.may + '. The API is below ' + base + 'api/; ' + base + 'api/openapi.json describes it.')
}
start().catch(() => say('The console cannot be reached.'))
`

const PAGE = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Sluice console</title>
<style>${STYLE}</style>
<h1>Sluice console</h1>
<p>One moment.</p>
<script>${SCRIPT}</script>
</html>
`

const hashOf = (text: string) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`

/** The page of the console. It has no data: it asks the API. */
export const PAGE_REPLY: Reply = {
  status: 200,
  type: 'text/html; charset=utf-8',
  body: PAGE,
  headers: {
    'Content-Security-Policy': [
      "default-src 'none'",
      `script-src ${hashOf(SCRIPT)}`,
      `style-src ${hashOf(STYLE)}`,
      "connect-src 'self'",
      "frame-ancestors 'none'",
      "base-uri 'none'",
      "form-action 'none'",
      "require-trusted-types-for 'script'",
      "trusted-types 'none'",
    ].join('; '),
  },
}

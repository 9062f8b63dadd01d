import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Pages that moved, and where they stand. Links of others to the old address lead there. */
export const MOVED: Readonly<Record<string, string>> = {
  '/blocks': '/blocks-and-lists',
  '/keys-and-proxies': '/keys',
  '/leases': '/fewer-round-trips#leases',
  '/lists': '/blocks-and-lists#lists',
  '/queues-and-shaping': '/queues',
  '/relaxed-counting': '/fewer-round-trips#relaxed-counting',
  '/shadow-bans': '/responders#shadow',
  '/way-of-a-decision': '/lifecycle',
}

/** Writes a page at each old address that leads to the new one. */
export function writeMoved(outDir: string): void {
  for (const [from, to] of Object.entries(MOVED)) {
    const html = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Moved</title>
<link rel="canonical" href="${to}">
<meta http-equiv="refresh" content="0; url=${to}">
<p>This page moved to <a href="${to}">${to}</a>.</p>
</html>
`
    writeFileSync(join(outDir, `${from}.html`), html)
  }
}

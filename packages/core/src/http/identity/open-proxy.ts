const warned = new WeakSet<object>()

/**
 * Warns, once per app, that its proxy settings let every client choose the address it is known by.
 * `setting` says which, and `remedy` what to write instead.
 */
export function warnOfOpenProxy(app: object, setting: string, remedy: string): void {
  if (warned.has(app)) return
  warned.add(app)
  process.emitWarning(
    `${setting} trusts X-Forwarded-For from everyone, so any client can choose its address and escape limits by IP; ${remedy}`,
    { type: 'SluiceWarning', code: 'SLUICE_OPEN_PROXY' },
  )
}

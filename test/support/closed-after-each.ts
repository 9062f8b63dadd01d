import { afterEach } from 'vitest'

/** Takes what a test has opened, as functions that close it. They run after each test of the file, the last one first. */
export function closedAfterEach(): (() => unknown)[] {
  const open: (() => unknown)[] = []
  afterEach(async () => {
    for (const close of open.splice(0).reverse()) await close()
  })
  return open
}

// Deep: needs a browser.
import { createLimiter, memoryStore, slidingLog } from '@sluice/core'
import { expect, test } from 'vitest'
import { consoleBrowser, settled } from './browser.js'
import { servedStore } from './served.js'

const { open, opened } = consoleBrowser()

test('a number below a limit shows at most how many requests it would have refused', async () => {
  const store = memoryStore()
  const limiter = createLimiter({ name: 'lowered', store, limits: [slidingLog({ limit: 10, window: '1h' })] })
  const { url, close } = await servedStore(store, { limiters: [limiter] })
  open.push(close)
  for (let n = 0; n < 8; n++) await limiter.consume('ann')
  const { page, complaints } = await opened(`${url}/#/policies`, 'bob')
  await settled(page)
  const units = page.getByRole('spinbutton', { name: 'Units' })
  await units.waitFor({ timeout: 15_000 })
  const sentence = page.getByText(/would have refused/)
  await expect
    .poll(() => sentence.textContent())
    .toMatch(/^5 per h would have refused at most 3 \(37.5%\) of 8 decisions since/)
  await units.fill('8')
  await expect.poll(() => sentence.textContent()).toMatch(/^8 per h would have refused none of 8 decisions since/)
  await units.fill('10')
  await page.getByText('Type a number from 1 to 9.').waitFor()
  expect(complaints).toEqual([])
})

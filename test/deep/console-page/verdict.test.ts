// Deep: needs a browser.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { byIp, ipRanges, memoryStore, redisStore, type Store, storeList } from '@sluice/core'
import { createGuard } from '@sluice/core/http'
import { policies, RedisDocuments } from '@sluice/policies'
import { Redis } from 'ioredis'
import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { contextOf } from '../../support/context.js'
import { startRedis } from '../../support/redis-server.js'
import { consoleBrowser, find, show } from './browser.js'
import { servedStore } from './served.js'

// What the page says of a client is true, and leads to what can be changed.

const { open, opened } = consoleBrowser()

const IP = '198.18.4.9'

async function served(store: Store, options: object): Promise<string> {
  const { url, close } = await servedStore(store, options)
  open.push(close)
  return url
}

async function documentOf(all: object, more: object = {}) {
  const document = await policies.from({ object: { version: 1, policies: all } as never, ...more })
  open.push(() => document.close())
  return document
}

/** The colours of the sentences about a client: what is green says that it is admitted. */
const tones = (page: Page) =>
  page.locator('.verdict > .notice').evaluateAll((all) => all.map(({ className }) => className.replace('notice ', '')))

test('a limit that needs more than the client is not known, and nothing is green until it is given', async () => {
  const document = await documentOf(
    { mine: { key: 'user', limits: [{ limit: 5, window: '1h' }] }, all: { limits: [{ limit: 9, window: '1h' }] } },
    { keys: { user: () => undefined } },
  )
  const url = await served(memoryStore(), { policies: document })
  const { page } = await opened(url, 'ann')
  await find(page, 'ip', IP, /Admitted by what counts its ip: default › all/)
  await page.getByText('It stays admitted until a limit is used up. It has used nothing yet.').waitFor()
  await page.getByText('default › mine: not known: needs the user').waitFor()
  expect(await tones(page)).toEqual(['plain', 'warn'])
  await page.getByRole('textbox', { name: 'Its user' }).fill('bob')
  await page.getByRole('button', { name: 'Ask again' }).click()
  await page.getByText('A request would be admitted now').waitFor()
  expect(await tones(page)).not.toContain('warn')
})

test('a client is let in together with the user that its refusals name', async () => {
  const store = memoryStore()
  let user: string | undefined = 'bob'
  const document = await documentOf(
    { mine: { key: 'user', limits: [{ limit: 1, window: '1h' }] }, all: { limits: [{ limit: 9, window: '1h' }] } },
    { keys: { user: () => user } },
  )
  const url = await served(store, { policies: document })
  const guard = createGuard({ store, policies: document })
  for (let i = 0; i < 3; i++) await guard(contextOf({ ip: IP }))
  user = undefined
  const { page } = await opened(url, 'ann')
  await find(page, 'ip', IP, /Admitted by what counts its ip: default › all/)
  // The user is in its refusals: the operator types nothing.
  const refusals = page.getByRole('region', { name: 'Last refusals, table' })
  await refusals.getByRole('columnheader', { name: 'Also of' }).waitFor()
  await refusals.getByRole('link', { name: 'user bob' }).waitFor()
  await page.getByRole('button', { name: 'user bob (2 ×)' }).click()
  await page.getByText('It is refused now.').waitFor()
  await page.getByRole('button', { name: 'Ask without' }).waitFor()
  await page.getByRole('button', { name: 'Let in now' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByText('user bob').waitFor()
  await dialog.getByRole('button', { name: 'Let in now' }).click()
  await page.getByText(/is let in, until it has used a limit up again/).waitFor()
  await page.getByText('A request would be admitted now').waitFor()
})

test('a policy that only reports is told apart, and refuses nobody', async () => {
  const store = memoryStore()
  const document = await documentOf({
    tried: { limits: [{ limit: 1, window: '1h' }], enforce: { mode: 'report' } },
  })
  const guard = createGuard({ store, policies: document })
  const url = await served(store, { policies: document })
  for (let i = 0; i < 3; i++) await guard(contextOf({ ip: IP }))
  const { page } = await opened(url, 'ann')
  await page.locator('.chart .key').filter({ hasText: 'would be refused' }).waitFor()
  const tile = (name: string) => page.locator('.tiles > div').filter({ has: page.getByText(name, { exact: true }) })
  expect(await tile('Would be refused').textContent()).toMatch(/a second; not enforced$/)
  await find(page, 'ip', IP, /Would be refused; not enforced/)
  expect(await page.getByText('It is refused now').count()).toBe(0)
  expect(await page.getByRole('button', { name: 'Let in now' }).count()).toBe(0)
  expect(await tones(page)).toEqual(['warn', 'good'])
})

test('a raised bucket has more capacity and more refill, and the page shows both numbers before and after', async () => {
  const own = await startRedis()
  open.push(() => own.stop())
  const client = new Redis(own.port)
  const store = redisStore(client, { prefix: 'raise:', timeout: 15_000 })
  open.push(
    () => client.disconnect(),
    () => store.close(),
  )
  const documents = new RedisDocuments((command, ...args) => client.call(command, ...args), 'default', 'raise:')
  const bucket = '{ algorithm: tokenBucket, capacity: 5, refill: 1, every: 1s }'
  await documents.save(`{ version: 1, policies: { api: { limits: [${bucket}] } } }`, 0, 'carol')
  const document = await policies.from({ redis: client, save: client, prefix: 'raise:' })
  open.push(() => document.close())
  const url = await served(store, { policies: { policies: document, name: 'api' } })
  const { page } = await opened(url, 'ann')
  await find(page, 'ip', IP, /Nothing is known of this client/)
  await page.getByRole('button', { name: 'Raise a limit' }).click()
  const dialog = page.getByRole('dialog')
  expect(await dialog.getByRole('spinbutton', { name: 'New capacity' }).inputValue()).toBe('10')
  expect(await dialog.getByRole('spinbutton', { name: 'New refill per s' }).inputValue()).toBe('2')
  await dialog.getByText('5 at once, then 1 per s becomes 10 at once, then 2 per s').waitFor()
  await dialog.getByRole('spinbutton', { name: 'New capacity' }).fill('5')
  await dialog.getByRole('spinbutton', { name: 'New refill per s' }).fill('1')
  await dialog.getByText('These are the numbers that it has: nothing changes.').waitFor()
  expect(await dialog.getByRole('button', { name: 'Apply' }).isDisabled()).toBe(true)
  await dialog.getByRole('spinbutton', { name: 'New capacity' }).fill('50')
  await dialog.getByRole('button', { name: 'Apply' }).click()
  await page.getByText('50 at once, then 1 per s').first().waitFor()
})

test('what still refuses a client after it was let in is named, with a link to where it can be changed', async () => {
  const store = memoryStore({ deny: storeList('abusers') })
  const document = await documentOf({
    closed: { limits: [{ limit: 5, window: '1h' }], deny: { ip: ['198.18.0.0/16'] } },
    api: { limits: [{ limit: 1, window: '1h' }] },
  })
  const web = createGuard({ name: 'web', store, limit: 1, window: '1h', key: byIp() })
  const files = createGuard({ name: 'files', store, limit: 1, window: '1h', deny: ipRanges(['198.18.4.0/28']) })
  for (let i = 0; i < 2; i++) await web(contextOf({ ip: IP }))
  await store.blocks.add({ ip: IP }, { for: '1h', reason: 'scraping' })
  await store.blocks.add({ ip: '198.18.4.0/24' }, { for: '2h', reason: 'a botnet', policy: 'web' })
  await store.list('abusers').add({ ip: '198.18.4.9' }, { reason: 'again' })
  const url = await served(store, { limiters: [web, files], policies: document, lists: ['partners'] })
  const { page } = await opened(url, 'ann')
  await find(page, 'ip', IP, /It is refused now/)
  await page.getByRole('button', { name: 'Let in now' }).click()
  const dialog = page.getByRole('dialog')
  // What lasts longer is a click away.
  expect(await dialog.getByRole('button', { name: 'Add to a list' }).count()).toBe(0)
  await dialog.getByRole('button', { name: 'Raise a limit' }).click()
  await dialog.getByRole('heading', { name: 'Raise a limit until a date' }).waitFor()
  await dialog.getByRole('button', { name: 'Cancel' }).click()
  await page.getByRole('button', { name: 'Let in now' }).click()
  // Before it is done, the dialog says what it does not undo.
  await dialog.getByText('ends the block of every policy').waitFor()
  for (const text of [/Its network ip 198.18.4.0\/24/, /web: on a deny list: abusers/, /files: on a deny list/]) {
    await dialog.getByText(text).waitFor()
  }
  await dialog.getByRole('button', { name: 'Let in now' }).click()
  await expect.poll(() => page.getByRole('status').textContent()).toMatch(/is still refused, by .*abusers/)
  const refusing = page.getByRole('alert').filter({ hasText: 'It is refused now.' })
  const link = (name: string) => refusing.getByRole('link', { name, exact: true }).first()
  // The reasons in full, and nothing of the block that is ended.
  await expect.poll(() => refusing.textContent()).not.toMatch(/scraping/)
  await link('abusers').click()
  await page.getByRole('heading', { level: 1, name: 'Lists' }).waitFor()
  expect(page.url()).toMatch(/#\/lists\?list=abusers$/)
  await page
    .getByRole('row', { name: /198.18.4.9/ })
    .getByRole('button', { name: 'Remove' })
    .click()
  await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click()
  await page.getByText('The list is empty.').waitFor()
  await page.goBack()
  await expect.poll(() => refusing.textContent()).not.toMatch(/abusers/)
  await refusing.getByText('a botnet').waitFor()
  await link('default › closed').click()
  await page.locator('tr.marked').getByText('closed').waitFor()
  await page.goBack()
  await link('ip 198.18.4.0/24').click()
  await page.getByRole('heading', { level: 1, name: 'ip 198.18.4.0/24' }).waitFor()
  await page.getByRole('button', { name: 'Unblock' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Unblock' }).click()
  await expect.poll(() => page.getByRole('status').textContent()).toMatch(/is not blocked/)
  await page.goBack()
  await expect.poll(() => refusing.textContent()).toMatch(/files: on a deny list in code.*default › closed/)
  expect(await refusing.textContent()).not.toMatch(/network|abusers|web/)
})

test('refusals of a process that records none are not recorded, and never none', async () => {
  const own = await startRedis()
  open.push(() => own.stop())
  const file = fileURLToPath(new URL('../../console/counting-app.js', import.meta.url))
  const env = { ...process.env, REDIS_URL: `redis://127.0.0.1:${own.port}` }
  const worker = fork(file, { env, execArgv: [] })
  open.push(() => worker.disconnect())
  await once(worker, 'message')
  const client = new Redis(own.port)
  const store = redisStore(client, { timeout: 15_000 })
  open.push(
    () => client.disconnect(),
    () => store.close(),
  )
  const url = await served(store, {})
  worker.send('load')
  const { page } = await opened(url, 'ann')
  const hint = new RegExp(`recordRefusals\\(store\\) .*${worker.pid}|${worker.pid}.*recordRefusals\\(store\\)`)
  await page.locator('.attention li').filter({ hasText: hint }).waitFor()
  const table = page.getByRole('region', { name: 'Last refusals', exact: true })
  expect(await table.textContent()).toMatch(/Not recorded: call recordRefusals\(store\) in .*\(pid \d+\)/)
  await find(page, 'key', 'user-1', /Nothing is known of this client/)
  await page.getByText(/Not recorded: call recordRefusals\(store\) in/).waitFor()
  expect(await page.getByText('What was admitted is not kept for single clients.').count()).toBe(1)
})

test('where newer refusals have replaced those of a client, the page says of which span they are, and shows its traffic', async () => {
  const store = memoryStore()
  const url = await served(store, { traffic: true })
  const guard = createGuard({ name: 'web', store, limit: 1, window: '1h' })
  for (let i = 0; i < 3; i++) await guard(contextOf({ ip: IP }))
  for (let i = 0; i < 401; i++) await guard(contextOf({ ip: '203.0.113.9' }))
  const { page, complaints } = await opened(url, 'ann')
  const refusals = page.getByRole('region', { name: 'Last refusals', exact: true })
  await refusals.getByText(/^of the last .+: newer refusals have replaced earlier ones$/).waitFor()
  await find(page, 'ip', IP, /Nothing is known of this client/)
  await page.getByText(/^No refusal of the last .+ is recorded\. Earlier ones are not known/).waitFor()
  expect(await page.getByText('15 minutes is recorded').count()).toBe(0)
  await page.getByText('Traffic of the last 15 minutes has at least 2 refusals of it, among 3 decisions').waitFor()
  await page.getByRole('link', { name: 'its traffic' }).click()
  await page.getByRole('button', { name: 'Remove the filter by client' }).waitFor()
  expect(complaints).toEqual([])
})

test('the headline of a network is its block, or that it has none', async () => {
  const store = memoryStore()
  const url = await served(store, { policies: await documentOf({ all: { limits: [{ limit: 9, window: '1h' }] } }) })
  const { page } = await opened(url, 'ann')
  await find(page, 'ip', '198.18.4.0/24', /No block and no list names this network/)
  await store.blocks?.add({ ip: '198.18.4.0/23' }, { for: '1h', reason: 'a botnet' })
  await page.getByText('The addresses of this network are refused.').waitFor()
  await page.getByText('Its network ip 198.18.4.0/23 is blocked').waitFor()
  expect(await tones(page)).toEqual(['bad'])
})

/** A document in Redis whose policy `all` has 5 an hour, and its store. */
async function savedOnRedis() {
  const redis = await startRedis()
  open.push(() => redis.stop())
  const client = new Redis(redis.port)
  const store = redisStore(client, { timeout: 15_000 })
  const documents = new RedisDocuments((command, ...args) => client.call(command, ...args), 'default', 'sluice:')
  const textOf = (limit: number) => `{ version: 1, policies: { all: { limits: [{ limit: ${limit}, window: 1h }] } } }`
  await documents.save(textOf(5), 0, 'carol')
  const document = await policies.from({ redis: client, save: client })
  open.push(
    () => client.disconnect(),
    () => store.close(),
    () => document.close(),
  )
  return { store, documents, textOf, document }
}

test('an override keeps its date where it is changed, and warns once everyone has more', async () => {
  const { store, documents, textOf, document } = await savedOnRedis()
  const url = await served(store, { policies: document })
  const { page, complaints } = await opened(url, 'ann')
  await find(page, 'ip', IP, /Nothing is known of this client/)
  const dialog = page.getByRole('dialog')
  const raise = async () => {
    await page.getByRole('button', { name: 'Raise a limit' }).click()
    await dialog.getByRole('heading', { name: 'Raise a limit until a date' }).waitFor()
  }
  await raise()
  const date = `${new Date(Date.now() + 86_400_000).toISOString().slice(0, 10)}T20:00`
  await dialog.getByLabel('Until').fill(date)
  await dialog.getByText('5 per h becomes 10 per h').waitFor()
  await dialog.getByRole('button', { name: 'Apply' }).click()
  const own = page.getByRole('region', { name: 'Limits of its own, table' })
  await own.getByRole('row', { name: /all limit 10/ }).waitFor()
  expect(await own.getByText('lower than').count()).toBe(0)
  await raise()
  expect(await dialog.getByLabel('Until').inputValue()).toBe(date)
  // Twice of what the client has, and not of what others have.
  expect(await dialog.getByRole('spinbutton', { name: 'New limit per h' }).inputValue()).toBe('20')
  await page.keyboard.press('Escape')
  await documents.save(textOf(50), 1, 'carol')
  await expect
    .poll(
      async () => {
        await page.reload()
        await own.getByRole('row', { name: /all limit 10/ }).waitFor()
        return own.textContent()
      },
      { timeout: 30_000, interval: 1000 },
    )
    .toMatch(/lower than the policy's limit now: 10 beside 50 per h/)
  await show(page, 'policies')
  await page.getByText("lower than the policy's limit now: 10 beside 50 per h").waitFor()
  expect(complaints).toEqual([])
})

test('an override stands on the page of its client, and a change of a document with its effect; both can be taken back', async () => {
  const { store, documents, textOf, document } = await savedOnRedis()
  const url = await served(store, { policies: document, traffic: true })
  const { page } = await opened(url, 'ann')
  await find(page, 'ip', IP, /Nothing is known of this client/)
  await page.getByRole('button', { name: 'Raise a limit' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByRole('textbox', { name: 'Reason' }).fill('a trial')
  await dialog.getByText('5 per h becomes 10 per h').waitFor()
  await dialog.getByRole('button', { name: 'Apply' }).click()
  const own = page.getByRole('region', { name: 'Limits of its own, table' })
  await own.getByRole('row', { name: /all limit 10 .* ann .* a trial/ }).waitFor()
  await page.getByRole('link', { name: 'Changes' }).click()
  const override = page.getByRole('row', { name: /limit changed until a date/ })
  await override.getByRole('button', { name: 'Undo' }).click()
  await dialog.getByRole('button', { name: 'End override' }).click()
  await page.getByRole('row', { name: /override ended/ }).waitFor()
  // It would end an override that came later.
  expect(await override.getByRole('button', { name: 'Undo' }).count()).toBe(0)
  await page.goBack()
  await page.getByText('Nothing is known of this client').waitFor()
  expect(await own.count()).toBe(0)

  const applied = {
    by: 'dave',
    action: 'apply',
    before: { document: 'default', version: 1 },
    after: { document: 'default', version: 2 },
  }
  await store.changes.record(applied, () => documents.save(textOf(3), 1, 'dave'))
  await page.getByRole('link', { name: 'Changes' }).click()
  const version = page.getByRole('row', { name: /dave new version/ })
  await version.getByText('+ limit: 3').waitFor()
  await version.getByText(/Refused by limits of all: – → – too early: 0 of 10 minutes/).waitFor()
  const data = {
    policy: 'all',
    identity: { kind: 'ip', value: '198.18.4.7' },
    limits: [{ limit: 4 }],
    until: '2090-01-01T00:00:00Z',
  }
  const headers = { 'Content-Type': 'application/json', 'Sluice-Console': '1' }
  expect((await page.request.post(`${url}/api/override`, { data, headers })).ok()).toBe(true)
  await version.getByRole('button', { name: 'Undo' }).click()
  await dialog.getByText('Overrides stay in force').waitFor()
  expect(await dialog.getByRole('listitem').allTextContents()).toEqual(['ip 198.18.4.7, all: limit 4'])
  await dialog.getByRole('button', { name: 'Roll back' }).click()
  await page.getByRole('row', { name: /ann rolled back/ }).waitFor()
  expect((await documents.newest())?.text).toBe(textOf(5))
})

test('no list is chosen for an operator who lets a client in, but one that allows', async () => {
  const store = memoryStore({ deny: storeList('abusers') })
  const web = createGuard({ name: 'web', store, limit: 1, window: '1h', key: byIp(), allow: storeList('partners') })
  const url = await served(store, { limiters: [web], lists: ['partners'] })
  for (let i = 0; i < 2; i++) await web(contextOf({ ip: IP }))
  const { page } = await opened(url, 'ann')
  await find(page, 'ip', IP, /It is refused now/)
  const dialog = page.getByRole('dialog')
  const list = dialog.getByRole('combobox', { name: 'List' })
  await page.getByRole('button', { name: 'Add to a list' }).click()
  expect(await list.inputValue()).toBe('')
  await dialog.getByText('Choose a list: some let in').waitFor()
  expect(await dialog.getByRole('button', { name: 'Add', exact: true }).isDisabled()).toBe(true)
  await page.keyboard.press('Escape')
  await page.getByRole('button', { name: 'Let in now' }).click()
  await dialog.getByRole('button', { name: 'Add to a list' }).click()
  expect(await list.getByRole('option').allTextContents()).toEqual(['partners: allows'])
  await dialog.getByRole('button', { name: 'Add', exact: true }).click()
  await page.getByText('A request would be admitted now').waitFor()
  await page.getByText(/^It was refused 1 time in the last 15 minutes, the last time at/).waitFor()
})

// Takes the picture of the console that README and docs/console.md show: `npm run docs:picture`. The demo runs with its traffic.
import { spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { chromium } from 'playwright-core'
import { chromiumPath } from '../scripts/programs.js'

const TARGET = fileURLToPath(new URL('pictures/console.webp', import.meta.url))
const DEMO = fileURLToPath(new URL('../examples/demo/main.js', import.meta.url))
const SIZE = { width: 1280, height: 1010 }
/** By then the attacker is banned, and the crowd of the second time waits. */
const TRAFFIC_MS = 43_000

const executablePath = chromiumPath()
if (!executablePath) throw new Error('no Chromium: node scripts/programs.js chromium, or set CHROMIUM')
const demo = spawn(process.execPath, [DEMO], {
  stdio: ['ignore', 'pipe', 'inherit'],
  env: { ...process.env, PORT: '3900' },
})
const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] })
try {
  let link
  for await (const line of createInterface(demo.stdout)) {
    link = /^console +(\S+)/.exec(line)?.[1]
    if (link) break
  }
  const page = await browser.newPage({ viewport: SIZE, colorScheme: 'light' })
  await page.goto(link)
  await page.getByRole('button', { name: 'Send traffic' }).click()
  await page.getByRole('button', { name: 'Send', exact: true }).click()
  await page.waitForTimeout(TRAFFIC_MS)
  const png = await page.screenshot()
  const blank = await browser.newPage()
  const webp = await blank.evaluate(async (data) => {
    const bytes = Uint8Array.from(atob(data), (each) => each.charCodeAt(0))
    const bitmap = await createImageBitmap(new Blob([bytes], { type: 'image/png' }))
    const canvas = document.createElement('canvas')
    Object.assign(canvas, { width: bitmap.width, height: bitmap.height })
    canvas.getContext('2d').drawImage(bitmap, 0, 0)
    return canvas.toDataURL('image/webp', 0.86).split(',')[1]
  }, png.toString('base64'))
  writeFileSync(TARGET, Buffer.from(webp, 'base64'))
} finally {
  await browser.close()
  demo.kill('SIGTERM')
}

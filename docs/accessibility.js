import axe from 'axe-core'

/** One page of each make. */
const PAGES = ['/', '/login-protection', '/recipes', '/options', '/api/@sluice/core/interfaces/BanOptions']

/**
 * The rules of WCAG 2.1 AA that pages break, by axe, in light and in dark colours.
 *
 * @param {import('playwright-core').Browser} browser
 * @param {string} origin
 * @returns {Promise<string[]>} a line for each broken rule
 */
export async function brokenRules(browser, origin) {
  const broken = []
  for (const colorScheme of /** @type {const} */ (['light', 'dark'])) {
    const context = await browser.newContext({ colorScheme, viewport: { width: 1280, height: 800 } })
    const page = await context.newPage()
    for (const path of PAGES) {
      await page.goto(origin + path, { waitUntil: 'load' })
      await page.waitForSelector('.VPDoc')
      // axe measures no contrast on gradients.
      await page.addStyleTag({ content: '.vp-doc pre, .vp-doc table { background-image: none !important }' })
      await page.evaluate(axe.source)
      const { violations } = await page.evaluate(() =>
        globalThis.axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa'] }),
      )
      for (const { id, help, nodes } of violations)
        broken.push(`${path}, ${colorScheme}: ${id}: ${help}, ${nodes.length} times: ${nodes[0].html}`)
    }
    await context.close()
  }
  return broken
}

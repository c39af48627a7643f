import type { Page } from '@playwright/test'

// quiet waits until the view has come, and nothing is being loaded or read any more.
export async function quiet(page: Page) {
  await page.locator('main').waitFor()
  await page.waitForFunction(() => !document.querySelector('.loading, [aria-busy=true]'))
  // Two frames, so that what the last answer brought is drawn.
  await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))))
}

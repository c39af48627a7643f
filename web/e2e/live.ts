// The messages of live regions, as a screen reader reads them out.
import type { Page } from '@playwright/test'

// listen records, for the pages that are opened from now on, the text that is added to a live region: a region that is
// atomic is read out whole, another one by the elements that came.
export async function listen(page: Page): Promise<() => Promise<string[]>> {
  await page.addInitScript(() => {
    const said: string[] = []
    Object.assign(window, { said })
    const live = '[role=status], [role=alert], [role=log], [aria-live=polite], [aria-live=assertive]'
    const words = (node: Node) => (node.textContent ?? '').replace(/\s+/g, ' ').trim()
    const start = () =>
      new MutationObserver((changes) => {
        const heard = new Map<Node, string>()
        for (const change of changes) {
          const at = change.target instanceof Element ? change.target : change.target.parentElement
          const region = at?.closest(live)
          const added = change.type === 'characterData' ? [change.target] : [...change.addedNodes]
          if (region && added.length > 0) {
            if (region.getAttribute('aria-atomic') === 'false') for (const node of added) heard.set(node, words(node))
            else heard.set(region, words(region))
            continue
          }
          for (const node of added) {
            if (!(node instanceof Element)) continue
            const alerts = node.matches(live) ? [node] : [...node.querySelectorAll(live)]
            for (const alert of alerts) heard.set(alert, words(alert))
          }
        }
        said.push(...[...heard.values()].filter(Boolean))
      }).observe(document, { childList: true, subtree: true, characterData: true })
    start()
  })
  // The messages since the last call.
  return () => page.evaluate(() => (window as unknown as { said: string[] }).said.splice(0))
}

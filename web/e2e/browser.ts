// What walks ask of a page through the browser's own tools, past the page's Content-Security-Policy.
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Page } from '@playwright/test'

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

async function evaluate<T>(page: Page, expression: string): Promise<T> {
  const session = await page.context().newCDPSession(page)
  try {
    const { result, exceptionDetails } = await session.send('Runtime.evaluate', {
      expression,
      awaitPromise: true,
      returnByValue: true,
    })
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text)
    return result.value as T
  } finally {
    await session.detach()
  }
}

// violations returns what axe finds wrong with what is shown, and which contrasts it could not tell; but not those of
// text that is scrolled below a bar that stays in its place, which nobody reads there. Text that the edge of the window
// cuts is scrolled into view, and looked at again. A single character counts as text.
export async function violations(page: Page): Promise<string[]> {
  await evaluate(
    page,
    `void (window.axe || (${'function () {'} ${axe} ${'}'}).call(window),
      axe._audit.checks['color-contrast'].options.ignoreLength = true)`,
  )
  return evaluate<string[]>(
    page,
    `(async () => {
    const only = { runOnly: ['color-contrast'], resultTypes: ['violations', 'incomplete'] }
    const key = (node) => node.any[0]?.data?.messageKey
    const unsure = (found) => found.incomplete.filter((v) => v.id === 'color-contrast')
      .map((v) => ({ ...v, nodes: v.nodes.filter((n) => key(n) !== 'bgOverlap') }))
    const found = await axe.run(document, { resultTypes: ['violations', 'incomplete'] })
    const all = found.violations.map((v) => [v, ''])
    for (const rule of unsure(found)) {
      const isCut = (node) => key(node) === 'elmPartiallyObscured'
      all.push([{ ...rule, nodes: rule.nodes.filter((n) => !isCut(n)) }, ' (could not be told)'])
      for (let cut = rule.nodes.filter(isCut), last = Infinity; cut.length > 0; ) {
        if (cut.length === last) {
          all.push([{ ...rule, nodes: cut }, ' (could not be told)'])
          break
        }
        last = cut.length
        const elements = cut.map((n) => document.querySelector(n.target[0])).filter(Boolean)
        if (elements.length === 0) break
        elements[0].scrollIntoView({ block: 'center', inline: 'center' })
        const again = await axe.run({ include: elements }, only)
        all.push(...again.violations.map((v) => [v, '']))
        const rest = unsure(again).flatMap((v) => v.nodes)
        all.push([{ ...rule, nodes: rest.filter((n) => !isCut(n)) }, ' (could not be told)'])
        cut = rest.filter(isCut)
      }
    }
    return all.flatMap(([rule, how]) => rule.nodes.map((node) =>
      rule.id + how + ': ' + node.target.join(' ') + ' ' + (node.any[0]?.message ?? node.failureSummary)))
  })()`,
  )
}

// sideways returns the elements that reach beyond the page's width, if it can be scrolled sideways.
export const sideways = (page: Page) =>
  evaluate<string[]>(
    page,
    `document.documentElement.scrollWidth <= innerWidth
      && (document.getElementById('main')?.scrollWidth ?? 0) <= (document.getElementById('main')?.clientWidth ?? 0) ? []
    : [...document.querySelectorAll('body *')]
      .filter((e) => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest('.table-scroll, pre, .tabs, nav'))
      .map((e) => e.tagName + '.' + e.className).slice(0, 5)`,
  )

// focused describes the element that has the focus, and whether one can see it there.
export const focused = (page: Page) =>
  evaluate<{ name: string; shown: boolean }>(
    page,
    `(() => {
    const e = document.activeElement
    const box = e.getBoundingClientRect()
    const style = getComputedStyle(e)
    const outlined = style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 1
    const ring = e.id === 'main' || outlined || e.closest('.palette-head') !== null
    const visible = e !== document.body && box.width > 0 && box.height > 0
    return { name: e.tagName + '.' + e.className, shown: visible && ring }
  })()`,
  )

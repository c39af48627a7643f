// Measures how fast the page is in Chromium, and prints the figures as one JSON object. SPEED_URL is the address of an
// API, and SPEED_TOKEN an owner's token in a tenant of its own, in which 1,000 actions wait for a person, the newest of
// them with a text of 200 kB, and 10,000 have ended. A worker has to run. Nothing but the browser's own clock is asked how long something took.
import { chromium } from '@playwright/test'

const { SPEED_URL: base, SPEED_TOKEN: token, CHROMIUM: program = '/usr/bin/chromium' } = process.env
const rounds = 5
const decisions = 40
const steps = 100
const keys = 40
const slow = 4

async function api(method, path, body) {
  const answer = await fetch(base + path, {
    method,
    headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
    body: body && JSON.stringify(body),
  })
  const text = await answer.text()
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`)
  return JSON.parse(text)
}

const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

// quantile returns the value below which a part of the values is.
const quantile = (values, part) =>
  values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(part * values.length))]
const spread = (values) => ({
  p50: quantile(values, 0.5),
  p95: quantile(values, 0.95),
  worst: Math.max(...values),
  count: values.length,
})

// quiet waits until what was asked for is shown, and two frames more.
async function quiet(page) {
  await page.locator('main .list-row').first().waitFor()
  await page.waitForFunction(() => !document.querySelector('.loading, [aria-busy=true]'))
  await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))))
}

// largest opens the inbox in a browser without a cache, logged in, and returns when its largest text was painted.
async function largest(browser, storageState) {
  const context = await browser.newContext({ storageState, viewport: { width: 1350, height: 940 } })
  const page = await context.newPage()
  await page.goto(`${base}/inbox`)
  await quiet(page)
  await wait(500)
  const time = await page.evaluate(
    () =>
      new Promise((resolve) => {
        new PerformanceObserver((list) => resolve(list.getEntries().at(-1).startTime)).observe({
          type: 'largest-contentful-paint',
          buffered: true,
        })
      }),
  )
  const shift = await page.evaluate(
    () =>
      new Promise((resolve) => {
        let sum = 0
        new PerformanceObserver((list) => {
          for (const entry of list.getEntries()) sum += entry.value
        }).observe({ type: 'layout-shift', buffered: true })
        setTimeout(() => resolve(sum), 100)
      }),
  )
  await context.close()
  return { time, shift }
}

// type edits the longest text, and returns how long after a key its character was painted.
async function type(page) {
  await page.goto(`${base}/inbox?order=newest`)
  await quiet(page)
  await page.locator('.inbox-detail .bar').waitFor()
  await quiet(page)
  await page.keyboard.press('e')
  const field = page.locator('.inbox-detail textarea').first()
  await field.focus()
  const { length } = await field.inputValue()
  if (length < 190_000) throw new Error(`the longest text has ${length} characters`)
  const took = []
  for (let i = 0; i < keys + 5; i++) {
    await page.evaluate(() => {
      window.painted = new Promise((resolve) =>
        addEventListener(
          'keydown',
          ({ timeStamp }) =>
            requestAnimationFrame(() => {
              const { port1, port2 } = new MessageChannel()
              port1.onmessage = () => resolve(performance.now() - timeStamp)
              port2.postMessage(0)
            }),
          { capture: true, once: true },
        ),
      )
    })
    await page.keyboard.press('x')
    took.push(await page.evaluate(() => window.painted))
    await wait(50)
  }
  return spread(took.slice(5))
}

// load scrolls a list to its end until it has as many rows, which the list itself counts, and returns to the first.
async function load(page, rows) {
  await page.waitForFunction(
    (rows) => {
      const list = document.querySelector('main .list')
      list.scrollTop = list.scrollHeight
      return Number(list.querySelector('.list-row')?.getAttribute('aria-setsize')) >= rows
    },
    rows,
    { timeout: 120_000, polling: 50 },
  )
  await page.evaluate(() => {
    document.querySelector('main .list').scrollTop = 0
  })
  await quiet(page)
}

// fromKey presses a key and returns how long after it was pressed the browser had painted what came of it: until
// another row is selected, and with detail, until another action is shown in full.
async function fromKey(page, key, detail) {
  await page.evaluate((detail) => {
    const row = () => document.querySelector('main .list-row[aria-current]')?.getAttribute('aria-posinset')
    const shown = () => document.querySelector('.inbox-detail .crumbs a')?.getAttribute('href')
    const ready = (before) => row() !== before.row && (!detail || shown() !== before.shown)
    window.painted = new Promise((resolve) => {
      addEventListener(
        'keydown',
        (event) => {
          const before = { row: row(), shown: shown() }
          const look = () => {
            if (!ready(before)) return requestAnimationFrame(look)
            // A message sent before a frame is drawn arrives when it is.
            const { port1, port2 } = new MessageChannel()
            port1.onmessage = () => resolve(performance.now() - event.timeStamp)
            port2.postMessage(0)
          }
          requestAnimationFrame(look)
        },
        { capture: true, once: true },
      )
    })
  }, detail)
  await page.keyboard.press(key)
  return page.evaluate(() => window.painted)
}

async function throttled(page, measure) {
  const session = await page.context().newCDPSession(page)
  await session.send('Emulation.setCPUThrottlingRate', { rate: slow })
  try {
    return await measure()
  } finally {
    await session.send('Emulation.setCPUThrottlingRate', { rate: 1 })
    await session.detach()
  }
}

async function decide(page) {
  return throttled(page, async () => {
    const took = []
    for (let i = 0; i < decisions + 5; i++) {
      await page.locator('.inbox-detail .bar .primary:not([aria-disabled=true])').first().waitFor()
      took.push(await fromKey(page, 'a', true))
    }
    return spread(took.slice(5)) // the first ones compile
  })
}

async function walk(page) {
  await page.keyboard.press('j')
  return throttled(page, async () => {
    const took = []
    for (let i = 0; i < steps + 10; i++) took.push(await fromKey(page, 'j', false))
    return spread(took.slice(10))
  })
}

// heap returns the bytes in use after a collection.
async function heap(page) {
  const session = await page.context().newCDPSession(page)
  await session.send('HeapProfiler.collectGarbage')
  await session.send('HeapProfiler.collectGarbage')
  const { usedSize } = await session.send('Runtime.getHeapUsage')
  await session.detach()
  return usedSize
}

// follow counts the events that the API streams, beside the page.
async function follow(counted, signal) {
  const answer = await fetch(`${base}/api/v1/events`, {
    headers: { Authorization: `Bearer ${token}`, Accept: 'text/event-stream' },
    signal,
  })
  if (!answer.ok) throw new Error(`GET /api/v1/events: ${answer.status} ${await answer.text()}`)
  for await (const piece of answer.body.pipeThrough(new TextDecoderStream()))
    counted.events += piece.split('\ndata:').length - 1
}

// storm proposes actions, which the worker calls, so that a number of events comes at a pace, until there were so many.
// It returns how many came, in which time, and which long tasks the page had.
async function storm(page, perSecond, events) {
  const counted = { events: 0 }
  const ended = new AbortController()
  const following = follow(counted, ended.signal).catch((error) => {
    if (!ended.signal.aborted) throw error
  })
  await page.evaluate(() => {
    window.long = []
    window.longTasks = new PerformanceObserver((list) =>
      window.long.push(...list.getEntries().map(({ startTime, duration }) => [startTime, duration])),
    )
    window.longTasks.observe({ type: 'longtask' })
  })
  await wait(500)
  const before = await heap(page)
  const began = Date.now()
  const from = await page.evaluate(() => performance.now())
  for (let due = began; counted.events < events; due += 100) {
    const want = ((Date.now() - began) / 1000) * perSecond - counted.events
    const count = Math.max(0, Math.min(perSecond / 10, Math.round(want / 3)))
    if (count > 0) {
      const id = `${began}-${due}`
      await api('POST', '/api/v1/actions/batch', {
        items: Array.from({ length: count }, (_, i) => ({
          type: 'mcp.exec',
          external_id: `speed-${id}-${i}`,
          tool: { source: 'countersign', name: 'countersign.noop' },
          args: { n: i, note: 'x'.repeat(100) },
        })),
      })
    }
    await wait(Math.max(0, due + 100 - Date.now()))
    if (Date.now() - began > 120_000) throw new Error(`in two minutes there were ${counted.events} events of ${events}`)
  }
  const seconds = (Date.now() - began) / 1000
  await wait(2_000)
  ended.abort()
  await following
  const long = (
    await page.evaluate(() => {
      window.longTasks.disconnect()
      return window.long
    })
  ).filter(([at]) => at >= from)
  const perSecondLong = new Map()
  for (const [at] of long) perSecondLong.set(Math.floor(at / 1000), (perSecondLong.get(Math.floor(at / 1000)) ?? 0) + 1)
  const after = await heap(page)
  return {
    events: counted.events,
    seconds,
    long: long.length,
    long_in_one_second: Math.max(0, ...perSecondLong.values()),
    longest: Math.max(0, ...long.map(([, duration]) => duration)),
    heap_before: before,
    heap_after: after,
  }
}

const browser = await chromium.launch({
  executablePath: program,
  args: process.getuid?.() === 0 ? ['--no-sandbox'] : [],
})
try {
  const context = await browser.newContext({ viewport: { width: 1350, height: 940 } })
  const page = await context.newPage()
  const { code } = await api('POST', '/api/v1/login-codes')
  await page.goto(`${base}/login?to=/inbox#code=${code}`)
  await page.getByRole('button', { name: /^Log in as/ }).click()
  await quiet(page)
  const state = await context.storageState()
  const loads = []
  for (let i = 0; i < rounds; i++) loads.push(await largest(browser, state))
  await load(page, 1_000)
  const decision = await decide(page)
  const key = await type(page)
  await page.goto(`${base}/inbox`)
  await quiet(page)
  const inbox = await storm(page, 100, 2_000)
  await page.goto(`${base}/actions`)
  await quiet(page)
  await load(page, 10_000)
  const next = await walk(page)
  const actions = await storm(page, 100, 2_000)
  const hour = await storm(page, 250, 10_000)
  const lcp = spread(loads.map((one) => one.time))
  const shift = spread(loads.map((one) => one.shift))
  console.log(JSON.stringify({ chromium: browser.version(), lcp, shift, decision, key, next, inbox, actions, hour }))
} finally {
  await browser.close()
}

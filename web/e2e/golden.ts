// Golden files: the accessibility tree of a view, as Chromium builds it, and the messages of its live regions.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import type { Page } from '@playwright/test'
import { expect } from './fixture'

// GOLDEN=update writes the files again.
const update = process.env.GOLDEN === 'update'

// plain replaces the parts that differ from run to run: ids, times, lengths of time, addresses and processes.
const plain = (text: string) =>
  text
    .replace(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, 'ID')
    .replace(/\b[0-9a-f]{32,64}\b/g, 'DIGEST')
    .replace(/127\.0\.0\.1(:\d+)?/g, 'HOST')
    .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME')
    .replace(/\/tmp\/countersign-e2e-\w+/g, 'DIR')
    .replace(/\bdev-\d+/g, 'WORKER')
    .replace(/\d{4}-\d\d-\d\d/g, 'DAY')
    .replace(/\d\d:\d\d:\d\d/g, 'CLOCK')
    .replace(/(DAY )?CLOCK/g, 'TIME')
    .replace(/\b\d+(\.\d+)? (ms|s|min|h|d)\b( \d+ (s|min|h)\b)?/g, 'LENGTH')
    .replace(/\b(\d+(s|m|h|d|sec|min|hr|day|days) ago|in \d+ ?(s|m|h|d|sec|min|hr|day|days))\b/g, 'WHEN')
    .replace(/(?<=(time: |TIME, |HOST |WHEN |now ))now/g, 'WHEN')
    .replace(/(yesterday|tomorrow)/g, 'WHEN')
    .replace(/(DAY|WHEN) TIME/g, 'TIME')

function compare(name: string, text: string) {
  const file = new URL(`golden/${name}`, import.meta.url)
  const got = plain(text).trimEnd() + '\n'
  if (update || !existsSync(file)) writeFileSync(file, got)
  expect.soft(got, name).toBe(readFileSync(file, 'utf8'))
}

// tree compares the accessibility tree of an element with its golden file.
export async function tree(page: Page, name: string, of = 'main') {
  compare(`${name}.yml`, await page.locator(of).last().ariaSnapshot())
}

// messages compares the messages of live regions, in order, with their golden file.
export const messages = (name: string, said: readonly string[]) => compare(`${name}.txt`, said.join('\n'))

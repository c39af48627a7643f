// Fails when the built page is larger than it may be: what is loaded first, each view that comes later, and the style.
import { readdirSync, readFileSync } from 'node:fs'
import { gzipSync } from 'node:zlib'

const folder = new URL('../dist/', import.meta.url)
const most = { first: 150_000, css: 12_000, later: 40_000 }
const document = readFileSync(new URL('index.html', folder), 'utf8')
// What the document names is loaded first: its scripts, and what they import at once.
const first = new Set([...document.matchAll(/="\.\/([\w-]+\.js)"/g)].map((found) => found[1]))
let loaded = 0
let failed = false
const report = (what, size, limit) => {
  failed ||= size > limit
  console.log(`${size > limit ? 'TOO LARGE ' : ''}${what}: ${(size / 1000).toFixed(1)} of ${limit / 1000} kB`)
}
for (const name of readdirSync(folder).toSorted()) {
  const size = gzipSync(readFileSync(new URL(name, folder)), { level: 9 }).length
  if (first.has(name)) loaded += size
  else if (name.endsWith('.js')) report(name, size, most.later)
  if (name.endsWith('.css')) report(name, size, most.css)
}
report('first load', loaded, most.first)
process.exit(failed ? 1 : 0)

import { defineConfig } from '@playwright/test'

// The tests run against the real program, which e2e/start.ts starts: only there the headers are real.
export default defineConfig({
  testDir: 'e2e',
  globalSetup: './e2e/start.ts',
  fullyParallel: false,
  workers: Number(process.env.E2E_WORKERS ?? 2),
  // Bounds of a test that hangs, long because make check runs the tests of Go at the same time.
  timeout: 180_000,
  expect: { timeout: 30_000 },
  reporter: [['line']],
  outputDir: '/tmp/countersign-e2e',
  use: {
    viewport: { width: 1440, height: 900 },
    timezoneId: 'Europe/Vienna',
    locale: 'en-GB',
    trace: 'off',
    launchOptions: {
      executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
      // Chromium's sandbox does not start as root.
      args: process.getuid?.() === 0 ? ['--no-sandbox'] : [],
    },
  },
})

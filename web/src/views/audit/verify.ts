// The verification of the log, page by page: pure, apart from the request that it is given.
import type { Schemas } from '../../lib/client'

export type Report = Schemas['AuditReport']

export interface Progress {
  // through is the last checkpoint that was compared, and of the number of the last one at the beginning.
  through: number
  of: number
}

// joined returns one report for two that follow each other. Findings stay in the order of the chain.
export function joined(before: Report | undefined, next: Report): Report {
  if (!before) return next
  const sum = (key: 'checkpoints' | 'covered' | 'pruned' | 'findings_omitted') =>
    Number(before[key]) + Number(next[key])
  return {
    ...next,
    findings: [...before.findings, ...next.findings],
    findings_omitted: sum('findings_omitted'),
    checkpoints: sum('checkpoints'),
    covered: sum('covered'),
    pruned: sum('pruned'),
    head: next.head ?? before.head,
  }
}

// run reads all pages, and calls heard after each. It throws what a request throws, such as the end of a signal.
export async function run(
  page: (after: number | undefined) => Promise<Report>,
  heard: (report: Report) => void,
): Promise<Report> {
  let all: Report | undefined
  for (let after: number | undefined; ; ) {
    all = joined(all, await page(after))
    heard(all)
    const next = all.next_after === undefined ? undefined : Number(all.next_after)
    // A position that does not go on would be read forever.
    if (next === undefined || (after !== undefined && next <= after)) return all
    after = next
  }
}

const count = (n: unknown) => Number(n).toLocaleString('en')

// verdict returns the result in one sentence.
export function verdict(report: Report): string {
  const found = report.findings.length + Number(report.findings_omitted)
  const scope = `${count(report.covered)} events in ${count(report.checkpoints)} checkpoints`
  if (found > 0) return `${count(found)} ${found === 1 ? 'finding' : 'findings'} in ${scope}.`
  return `Intact: ${scope}${Number(report.pruned) > 0 ? `, and ${count(report.pruned)} that retention deleted` : ''}.`
}

// intact reports whether a verification found nothing. A noted head that is missing is a finding.
export const intact = (report: Report) => report.findings.length === 0 && Number(report.findings_omitted) === 0

// The simulation of a policy over past actions, added up page by page.
import type { Schemas } from './client'

type Page = Schemas['PolicySimulation']
export type Flow = Omit<Page['counts'][number], 'tool'>
export type Difference = Page['differences'][number]

export interface Totals {
  examined: number
  compared: number
  withoutTool: number
  // changed counts the actions of which mode or required approvals would be others than by the current policy.
  changed: number
  // flows have a count for each way from then to now to changed; the ways that change a mode come first.
  flows: readonly Flow[]
  // differences are the latest actions that would change.
  differences: readonly Difference[]
  // version is that of the first page; moved reports whether a later page had another one.
  version: number | undefined
  moved: boolean
}

// mostListed bounds the listed actions.
export const mostListed = 1_000

export const nothing: Totals = {
  examined: 0,
  compared: 0,
  withoutTool: 0,
  changed: 0,
  flows: [],
  differences: [],
  version: undefined,
  moved: false,
}

const differs = (flow: Omit<Flow, 'count'>) =>
  flow.now !== flow.changed || flow.now_approvals !== flow.changed_approvals

const ways = ['then', 'now', 'changed', 'now_approvals', 'changed_approvals'] as const

// add returns the totals with another page.
export function add(totals: Totals, page: Page): Totals {
  const flows = totals.flows.map((flow) => ({ ...flow }))
  let changed = totals.changed
  for (const { tool: _, ...one } of page.counts) {
    const same = flows.find((flow) => ways.every((way) => flow[way] === one[way]))
    if (same) same.count += one.count
    else flows.push(one)
    if (differs(one)) changed += one.count
  }
  const more = page.differences.filter(({ now, changed: to }) => now.mode !== to.mode || now.approvals !== to.approvals)
  return {
    examined: totals.examined + page.examined,
    compared: totals.compared + page.compared,
    withoutTool: totals.withoutTool + page.without_tool,
    changed,
    flows: flows.sort((a, b) => Number(differs(b)) - Number(differs(a)) || b.count - a.count),
    differences: [...totals.differences, ...more].slice(0, mostListed),
    version: totals.version ?? page.config_version,
    moved: totals.moved || (totals.version !== undefined && totals.version !== page.config_version),
  }
}

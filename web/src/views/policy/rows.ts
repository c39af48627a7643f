// The rows of the matrix of policy.
import { path, type Schemas } from '../../lib/client'

export type Tool = Schemas['PolicyMatrixRow']
export type ModeRule = Schemas['ModeRule']
export type ModeOf = Schemas['Mode']
type Step = Schemas['TraceStep']

// Row is a tool, or a pattern that covers tools.
export interface Row {
  key: string
  tool?: Tool
  // page is the page of the list that has the tool.
  page?: number
}

// rowsOf returns the rows of tools, below the patterns that cover them: everything first, then each source with its
// tools. modes are the stored modes; those of no listed tool come last where all tools are listed.
export function rowsOf(
  tools: readonly { tool: Tool; page: number }[],
  modes: readonly ModeRule[],
  all: boolean,
): Row[] {
  const rows: Row[] = [{ key: '*' }]
  for (const { tool } of modes) if (/^\*:./.test(tool) && tool !== '*:*') rows.push({ key: tool })
  let source = ''
  for (const { tool, page } of tools) {
    const of = sourceOf(tool.tool)
    if (of !== source) rows.push({ key: `${of}:*` })
    source = of
    rows.push({ key: tool.tool, tool, page })
  }
  if (all) for (const { tool } of modes) rows.push({ key: tool })
  const seen = new Set<string>(['*:*'])
  return rows.filter(({ key }) => !seen.has(key) && seen.add(key))
}

// covers reports whether a pattern covers a tool.
export function covers(pattern: string, tool: string): boolean {
  if (pattern === '*') return true
  const [source, action] = [sourceOf(pattern), pattern.slice(pattern.indexOf(':') + 1)]
  return (
    (source === '*' || source === sourceOf(tool)) && (action === '*' || action === tool.slice(tool.indexOf(':') + 1))
  )
}

export const sourceOf = (tool: string) => tool.slice(0, tool.indexOf(':'))

// modeOf returns the stored mode of exactly a pattern, for an automation or, where that is empty, for everybody.
export const modeOf = (modes: readonly ModeRule[], tool: string, automation: string) =>
  modes.find((mode) => mode.tool === tool && (mode.automation_id ?? '') === automation)

// entries returns modes as the policy document has them.
export const entries = (modes: readonly ModeRule[]) =>
  modes.map(({ tool, mode, automation_id: automation }) => ({
    tool,
    mode: mode as ModeOf,
    ...(automation && { automation_id: automation }),
  }))

// changed returns the modes with another one for a pattern, or without it where the mode is null.
export function changed(modes: readonly ModeRule[], tool: string, automation: string, mode: ModeOf | null) {
  const others = entries(modes.filter((one) => one !== modeOf(modes, tool, automation)))
  return mode === null ? others : [...others, { tool, mode, ...(automation && { automation_id: automation }) }]
}

const bases = ['automation_override', 'org_default', 'inferred_default']

// baseOf returns the answer of a base layer.
export const baseOf = (tool: Tool, layer: string): Step | undefined => tool.trace.find((step) => step.layer === layer)

// narrowing returns the answers of the other layers that have a mode.
export const narrowing = (tool: Tool): readonly Step[] =>
  tool.trace.filter((step) => step.said && !bases.includes(step.layer))

// modePath returns the path of the mode of a pattern.
export const modePath = (tool: string, automation: string) =>
  path(`/api/v1/policy/modes/${encodeURIComponent(tool)}`, { automation_id: automation })

// Why a person is asked, and why a person may not decide, in words.
import type { Schemas } from '../../lib/client'

export type Step = Schemas['TraceStep']

const layers: Record<string, string> = {
  automation_override: "the automation's mode",
  org_default: "the organisation's mode",
  inferred_default: 'the default for what the tool can do',
  asked_approval: 'the agent',
  always_person: 'the tool, which never runs without a person',
  drift: "the tool's definition or address",
  trust: "the employee's trust",
  scopes: "the employee's scopes",
  do_not_contact: 'the do-not-contact list',
  arguments: 'a rule about arguments',
  session_capability: "the session's mode",
  user_preference: 'a preference',
  token_scope: "the token's tools",
  quarantine: 'a new tool that is not accepted yet',
  grant: 'a grant',
}

const said: Record<string, string> = { allow: 'allows', require_approval: 'asks for a person', deny: 'denies' }

export interface Reason {
  layer: string
  who: string
  says: string
  detail: string
  asks: boolean
  version: string
}

// reasonsOf returns what the layers of policy said, in order, without those that said nothing.
export function reasonsOf(trace: readonly Step[]): Reason[] {
  return trace
    .filter((step) => step.said || step.detail)
    .map((step) => ({
      layer: step.layer,
      who:
        (layers[step.layer] ?? step.layer.replaceAll('_', ' ')) +
        (step.rule ? ` ${step.rule}` : '') +
        (step.tool ? ` for ${step.tool}` : ''),
      says: step.said ? (said[step.said] ?? step.said) : 'has no opinion',
      detail: step.detail ?? '',
      asks: step.said === 'require_approval',
      version: step.version ?? '',
    }))
}

const whyNots: Record<string, string> = {
  role: 'Your role does not include it.',
  scope: 'Your token lacks the required scope.',
  tools: 'Your token is for other tools.',
  own_proposal: 'This is your own proposal; another person must decide.',
  expired: 'The time to decide is over.',
  decided: 'Somebody has decided.',
  tool_gone: 'The tool is gone, so this can only be denied.',
  drift: 'The tool changed since this was proposed, so this can only be denied.',
  policy_denied: 'Policy denies it by now, so this can only be denied.',
  own_edit: 'You edited it; another person must approve.',
  voted: 'You have approved already; another person must approve too.',
  unreadable: 'The stored arguments cannot be read, so this can only be denied.',
}

// whyNotOf says why somebody may not decide about an item; undefined where they may.
export function whyNotOf(item: { may_decide?: boolean; why_not?: string } | undefined): string | undefined {
  if (item?.may_decide !== false) return undefined
  return whyNots[item.why_not ?? ''] ?? 'You are not allowed to decide this.'
}

// onlyApproving are the reasons that stand against approving and not against denying.
export const onlyApproving: readonly string[] = [
  'tool_gone',
  'drift',
  'policy_denied',
  'own_edit',
  'voted',
  'unreadable',
]

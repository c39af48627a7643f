import fc from 'fast-check'
import { expect, test } from 'vitest'
import { draftOf, put, take } from '../../form/draft'
import { anyArgs } from '../../form/random'
import { Problem } from '../../lib/client'
import { parse, stringify } from '../../lib/json'
import { complaintsOf, told } from './decide'
import { closedOf, complaints, filtersOf, type Item, known, searchOf, typed, words } from './items'
import { alike, argsOf, differences } from './likeness'
import { rebased } from './memory'
import { reasonsOf, whyNotOf } from './reasons'

const item = (id: string, change: Partial<Item> = {}) =>
  ({
    effect: 'once',
    recipients: [],
    rate_bucket: 'default',
    must_run_before: null,
    may_decide: true,
    kind: 'approval',
    action_id: id,
    tool: 'mail:send',
    args_preview: `{"to":"${id}@example.org","subject":"Hello"}`,
    args_cut: false,
    risk: 'low',
    since: '2026-11-22T10:00:00Z',
    expires_at: null,
    approvals_needed: 1,
    approvals_given: 0,
    approved_by: [],
    escalated: false,
    reversible: true,
    session_id: 's-1',
    ...change,
  }) as Item

test('filters stand in the URL, and what else is there stays', () => {
  const filters = filtersOf('?kind=approval&kind=unknown&risk=high&tool=a:b&x=1')
  expect(filters).toEqual({ kind: ['approval', 'unknown'], risk: ['high'], tool: ['a:b'] })
  expect(searchOf('?x=1&tool=a:b', { tool: [], source: ['mail'] })).toBe('?x=1&source=mail')
  expect(filtersOf(searchOf('', filters))).toEqual(filters)
})

test('closed groups stand in the URL, beside the filters', () => {
  const search = searchOf('?order=session', { closed: ['a, b&closed=c', ''] })
  expect(closedOf(search)).toEqual(['a, b&closed=c', ''])
  expect(filtersOf(search)).toEqual({ order: ['session'] })
  expect(complaints(`${search}&closed=a&closed=a`)).toEqual([])
  expect(known(`${search}&sesion=x`)).toBe(search)
  expect(searchOf(search, { closed: [] })).toBe('?order=session')
})

test('filters read as they are written', () => {
  expect(typed('Ana source:mail risk:high risk:low invoice session:s-1 tool:mail:send')).toEqual({
    filters: {
      q: ['Ana invoice'],
      source: ['mail'],
      risk: ['high', 'low'],
      session: ['s-1'],
      tool: ['mail:send'],
      cohort: [],
      person: [],
      automation: [],
      escalated: [],
      expires_before: [],
    },
  })
  expect(typed('mail:send')).toMatchObject({ filters: { tool: ['mail:send'] } })
  expect(typed('cohort:newsletters')).toMatchObject({ filters: { cohort: ['newsletters'], tool: [] } })
  expect(typed(words({ tool: ['a:b'], risk: ['high'] }))).toMatchObject({ filters: { tool: ['a:b'], risk: ['high'] } })
})

test('words without a name are searched for, and stay so in the field', () => {
  expect(typed('what is this?')).toMatchObject({ filters: { q: ['what is this?'], source: [] } })
  expect(typed(words({ q: ['https://a.example/?x=1 %_'] }))).toMatchObject({ filters: { tool: [] } })
  expect(typed('source:mail source:crm')).toEqual({ problem: 'There can be one source.' })
})

test('items that are alike have the same kind, tool and session', () => {
  const all = [
    item('a'),
    item('b'),
    item('c', { session_id: 's-2' }),
    item('d', { tool: 'mail:list' }),
    item('e', { kind: 'unknown' }),
  ]
  expect(alike(all[0]!, all).map((one) => one.action_id)).toEqual(['b'])
  expect(differences([all[0]!, all[1]!])).toEqual({ pointers: ['/to'], tools: ['mail:send'], cut: false })
  expect(differences([all[0]!, item('f', { args_preview: '{"to":"a', args_cut: true })]).cut).toBe(true)
})

test('the arguments of an item are those of the list', () => {
  expect(argsOf(item('a', { args_preview: undefined, args: {} }))).toEqual({ args: {}, cut: false })
})

test('why a person is asked is in words, and names the rule', () => {
  expect(
    reasonsOf([
      { layer: 'org_default', said: 'allow', tool: 'mail:*', version: '12' },
      { layer: 'trust' },
      { layer: 'arguments', said: 'require_approval', rule: 'outside', detail: 'Mail to the outside' },
      { layer: 'new_layer', said: 'odd' },
    ]),
  ).toEqual([
    {
      layer: 'org_default',
      who: "the organisation's mode for mail:*",
      says: 'allows',
      detail: '',
      asks: false,
      version: '12',
    },
    {
      layer: 'arguments',
      who: 'a rule about arguments outside',
      says: 'asks for a person',
      detail: 'Mail to the outside',
      asks: true,
      version: '',
    },
    { layer: 'new_layer', who: 'new layer', says: 'odd', detail: '', asks: false, version: '' },
  ])
  expect(whyNotOf({ may_decide: false, why_not: 'own_proposal' })).toMatch(/your own/)
  expect(whyNotOf({ may_decide: false, why_not: 'something new' })).toBe('You are not allowed to decide this.')
  expect(whyNotOf({ may_decide: true })).toBeUndefined()
})

test('refusals say whether something was decided, and that what was typed is kept', () => {
  const problem = (status: number, body = {}) => new Problem(status, { title: 'Title', ...body }, new Headers())
  for (const status of [409, 412, 428, 500]) expect(told(problem(status)), String(status)).toContain('text is kept')
  expect(told(problem(410))).toContain('Too late')
  const undone = 'action 1 does not wait for a decision: it was undone by ada at 2026-01-02T03:04:05Z'
  expect(told(problem(409, { code: 'decided', detail: undone }))).toBe(`${undone}. Your text is kept.`)
  const expired = 'the time to decide about action 1 is over: nobody decided about it by 2026-01-02T03:04:05Z'
  expect(told(problem(410, { code: 'expired', detail: expired }))).toBe(`${expired}. Nothing was decided.`)
  expect(told(new TypeError('fetch'))).toContain('may or may not')
  expect(
    complaintsOf(
      problem(400, {
        errors: [
          { pointer: '/args/to/0', rule: 'format', message: 'is no address' },
          { pointer: '/note', rule: 'x', message: 'x' },
          { pointer: '/args', rule: 'y', message: 'y' },
        ],
      }),
    ),
  ).toEqual([
    { pointer: '/to/0', detail: 'is no address' },
    { pointer: '', detail: 'y' },
  ])
})

test('a draft goes over to what somebody else changed meanwhile', () => {
  const seen = parse('{"to":"a","subject":"x","n":1,"l":[1,2,3]}')
  const draft = take(put(take(draftOf(seen), '/n'), '/subject', 'mine'), '/l/2')
  expect(
    stringify(rebased(draft, seen, parse('{"to":"b","subject":"theirs","n":1,"l":[9,2,3],"more":null}')).args),
  ).toBe('{"to":"b","subject":"mine","l":[9,2],"more":null}')
})

test('a draft without changes becomes what is there now', () => {
  fc.assert(
    fc.property(
      anyArgs,
      anyArgs,
      (seen, now) => stringify(rebased(draftOf(parse(seen)), parse(seen), parse(now)).args) === now,
    ),
  )
})

test('values with spaces are read back as they are written', () => {
  const filters = { q: ['some words'], session: ['a b'], tool: ['mail:send'] }
  expect(typed(words(filters))).toMatchObject({ filters })
})

test('what is no filter, empty or twice in the address is a complaint, never left out', () => {
  expect(complaints('?session=a&risk=high&risk=low&order=tool')).toEqual([])
  expect(complaints('?sesion=a')).toEqual(['Unknown filter “sesion”.'])
  expect(complaints('?session=')).toEqual(['“session” is empty.'])
  expect(complaints('?session=a&session=b')).toEqual(['“session” is there twice.'])
  expect(known('?sesion=a&risk=high&session=')).toBe('?risk=high')
})

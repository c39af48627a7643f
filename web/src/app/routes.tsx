import { type ComponentType, lazy } from 'react'
import type { CommandID } from '../lib/keys'
import type { IconName } from '../ui/icon'
import Inbox from '../views/inbox/view'

export interface Route {
  path: string
  view: ComponentType<{ id: string }> | ComponentType<{ id?: string }> | ComponentType
  title: string
  // place is the entry of the navigation that the view belongs to.
  place?: string
}

export interface Place {
  path: string
  title: string
  icon: IconName
  command: CommandID
  // steers marks the views that set up how actions run. On a phone they are found by the palette.
  steers?: true
}

// The inbox is part of what is loaded first; the other views come when they are opened.
export const routes: readonly Route[] = [
  { path: '/inbox/:id?', view: Inbox, title: 'Inbox', place: '/inbox' },
  { path: '/actions', view: lazy(() => import('../views/actions/view')), title: 'Actions', place: '/actions' },
  { path: '/actions/:id', view: lazy(() => import('../views/action/view')), title: 'Action', place: '/actions' },
  {
    path: '/workflows/:id?',
    view: lazy(() => import('../views/workflows/view')),
    title: 'Workflows',
    place: '/workflows',
  },
  {
    path: '/dead-letters/:id?',
    view: lazy(() => import('../views/dead-letters/view')),
    title: 'Dead letters',
    place: '/dead-letters',
  },
  { path: '/policy/:id?', view: lazy(() => import('../views/policy/view')), title: 'Policy', place: '/policy' },
  { path: '/limits/:id?', view: lazy(() => import('../views/limits/view')), title: 'Limits', place: '/limits' },
  {
    path: '/people/:id?',
    view: lazy(() => import('../views/people/view')),
    title: 'People and tokens',
    place: '/people',
  },
  {
    path: '/subscriptions/:id?',
    view: lazy(() => import('../views/subscriptions/view')),
    title: 'Subscriptions',
    place: '/subscriptions',
  },
  { path: '/fleet', view: lazy(() => import('../views/fleet/view')), title: 'Fleet', place: '/fleet' },
  { path: '/audit', view: lazy(() => import('../views/audit/view')), title: 'Audit log', place: '/audit' },
  {
    path: '/sources/:id?',
    view: lazy(() => import('../views/sources/view')),
    title: 'Sources',
    place: '/sources',
  },
  { path: '/tools/:id?', view: lazy(() => import('../views/tools/view')), title: 'Tools', place: '/tools' },
  { path: '/settings', view: lazy(() => import('../views/settings/view')), title: 'Settings', place: '/settings' },
]

export const places: readonly Place[] = [
  { path: '/inbox', title: 'Inbox', icon: 'inbox', command: 'go_inbox' },
  { path: '/actions', title: 'Actions', icon: 'list', command: 'go_actions' },
  { path: '/workflows', title: 'Workflows', icon: 'ladder', command: 'go_workflows' },
  { path: '/dead-letters', title: 'Dead letters', icon: 'letter', command: 'go_dead_letters' },
  { path: '/policy', title: 'Policy', icon: 'scales', command: 'go_policy', steers: true },
  { path: '/tools', title: 'Tools', icon: 'wrench', command: 'go_tools', steers: true },
  { path: '/sources', title: 'Sources', icon: 'plug', command: 'go_sources', steers: true },
  { path: '/limits', title: 'Limits', icon: 'gauge', command: 'go_limits', steers: true },
  { path: '/fleet', title: 'Fleet', icon: 'fleet', command: 'go_fleet', steers: true },
  { path: '/people', title: 'People', icon: 'person', command: 'go_people', steers: true },
  { path: '/subscriptions', title: 'Subscriptions', icon: 'bell', command: 'go_subscriptions', steers: true },
  { path: '/audit', title: 'Audit log', icon: 'seal', command: 'go_audit', steers: true },
  { path: '/settings', title: 'Settings', icon: 'gear', command: 'go_settings' },
]

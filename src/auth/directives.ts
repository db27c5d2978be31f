/** The definitions of the directives: those of Apollo Federation, and also for arguments and input fields. */
export const authTypeDefs = `directive @authenticated on
  FIELD_DEFINITION | OBJECT | INTERFACE | SCALAR | ENUM | ARGUMENT_DEFINITION | INPUT_FIELD_DEFINITION
"The outer list is an OR, the inner lists are an AND."
directive @requiresScopes(scopes: [[String!]!]!) on
  FIELD_DEFINITION | OBJECT | INTERFACE | SCALAR | ENUM | ARGUMENT_DEFINITION | INPUT_FIELD_DEFINITION
"The outer list is an OR, the inner lists are an AND."
directive @policy(policies: [[String!]!]!) on
  FIELD_DEFINITION | OBJECT | INTERFACE | SCALAR | ENUM | ARGUMENT_DEFINITION | INPUT_FIELD_DEFINITION
`;

/** The arguments of the directives. */
export const DIRECTIVES = { authenticated: undefined, requiresScopes: 'scopes', policy: 'policies' } as const;
export type Name = keyof typeof DIRECTIVES;
/** The names of the directives. */
export const NAMES: readonly Name[] = Object.keys(DIRECTIVES) as Name[];

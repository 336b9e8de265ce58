// The rules of all operators.
import type {Rule} from '../draft.js';
import type {MLOperatorName} from '../operators.js';
import {elementwiseRules} from './elementwise.js';
import {matrixRules} from './matrix.js';
import {movementRules} from './movement.js';
import {normalizationRules} from './normalization.js';
import {recurrentRules} from './recurrent.js';
import {reductionRules} from './reduction.js';
import {spatialRules} from './spatial.js';

export const rules: Record<MLOperatorName, Rule> = {
  ...elementwiseRules,
  ...matrixRules,
  ...movementRules,
  ...normalizationRules,
  ...recurrentRules,
  ...reductionRules,
  ...spatialRules,
};
